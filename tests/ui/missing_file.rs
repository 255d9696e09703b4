netkit::model!(pub Digits = "models/smal.nk");

// The type is there all the same: nothing below is an error of its own.
static DIGITS: std::sync::Mutex<Digits> = std::sync::Mutex::new(Digits::new());
const _: () = assert!(Digits::ARENA_BYTES <= 64 * 1024);

impl Digits {
    fn best(&mut self, input: &[f32; Digits::INPUT_LEN]) -> usize {
        let output = self.forward(input);
        output.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0
    }
}

impl std::fmt::Display for Digits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(Digits::NAME)
    }
}

fn run<M: netkit::Model>(model: &mut M, input: &M::Input) -> M::Output {
    model.forward(input)
}

fn main() {
    let mut model = Digits::new_boxed();
    let input = [0.5; Digits::INPUT_LEN];
    let [first, ..] = model.forward(&input);
    let sum: f32 = run(&mut *model, &input).iter().sum();
    let shape: &[usize] = Digits::INPUT_SHAPE;
    println!("{first} {sum} {shape:?} {model} {}", DIGITS.lock().unwrap().best(&input));
}
