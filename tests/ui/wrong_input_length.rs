netkit::model!(Small = "models/small.nk");

fn main() {
    let mut model = Small::new();
    let _: [f32; 2] = model.forward(&[0.0; 3]);
    let _: [f32; 3] = model.forward(&[0.0; 2]);
}
