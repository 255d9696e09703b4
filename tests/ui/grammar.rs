netkit::model!();
netkit::model!(Digits);
netkit::model!(Bytes = b"models/small.nk");
netkit::model!(Concat = concat!("models/", "small.nk"));
netkit::model!(pub Option = "models/small.nk", fast = true);
netkit::model!(Two = "models/small.nk" "models/small.nk");
netkit::model!("models/1st.nk");
netkit::model!(Self = "models/small.nk");
netkit::model!(pub fn = "models/small.nk");
netkit::model!(1st = "models/small.nk");
netkit::model!(mod "models/small.nk");
netkit::model!("models/self.nk");

fn main() {
    let _ = Bytes::new().forward(&[0.0; Concat::INPUT_LEN]);
}
