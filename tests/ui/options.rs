netkit::model!(NoOption = "models/small.nk", fast = true);
netkit::model!(NoValue = "models/small.nk", convolution);
netkit::model!(OtherValue = "models/small.nk", convolution = fft);
netkit::model!(Quoted = "models/small.nk", convolution = "winograd");
netkit::model!(Twice = "models/small.nk", convolution = direct, convolution = winograd);
netkit::model!(NoComma = "models/small.nk" convolution = winograd);
netkit::model!(Int8 = "models/int8.nk", convolution = winograd);
netkit::model!(NoNumber = "models/small.nk", batch = "8");
netkit::model!(NoInput = "models/small.nk", batch = 0);

fn main() {
    let _ = (NoNumber::new().forward_batch(&[]), NoInput::BATCH);
    let _ = NoOption::new().forward(&[0.0; OtherValue::INPUT_LEN]);
    let _ = (Int8::new(), Twice::new(), NoComma::new(), Quoted::new(), NoValue::new());
}
