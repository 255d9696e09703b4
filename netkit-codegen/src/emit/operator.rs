//! Operator attributes as constant expressions.

use super::{float, number};
use netkit_core::op::{
    Activation, Concat, Conv2d, Dense, DepthwiseConv2d, PerChannel, Pool2d, Upsample2x, Window,
};
use proc_macro2::TokenStream;
use quote::quote;

fn pair(a: usize, b: usize) -> TokenStream {
    let (a, b) = (number(a), number(b));
    quote!([#a, #b])
}

fn window(w: &Window) -> TokenStream {
    let input = pair(w.in_h, w.in_w);
    let output = pair(w.out_h, w.out_w);
    let kernel = pair(w.kernel_h, w.kernel_w);
    let stride = pair(w.stride_h, w.stride_w);
    let dilation = pair(w.dilation_h, w.dilation_w);
    let padding = pair(w.pad_top, w.pad_left);
    quote!(nk::window(#input, #output, #kernel, #stride, #dilation, #padding))
}

pub(super) fn dense(op: &Dense) -> TokenStream {
    let [rows, inputs, outputs] = [op.rows, op.in_features, op.out_features].map(number);
    quote!(nk::Dense { rows: #rows, in_features: #inputs, out_features: #outputs })
}

pub(super) fn conv2d(op: &Conv2d) -> TokenStream {
    let window = window(&op.window);
    let [inputs, outputs] = [op.in_channels, op.out_channels].map(number);
    quote!(nk::Conv2d { window: #window, in_channels: #inputs, out_channels: #outputs })
}

pub(super) fn depthwise_conv2d(op: &DepthwiseConv2d) -> TokenStream {
    let window = window(&op.window);
    let [channels, multiplier] = [op.channels, op.multiplier].map(number);
    quote!(nk::DepthwiseConv2d { window: #window, channels: #channels, multiplier: #multiplier })
}

pub(super) fn pool2d(op: &Pool2d) -> TokenStream {
    let window = window(&op.window);
    let channels = number(op.channels);
    quote!(nk::Pool2d { window: #window, channels: #channels })
}

pub(super) fn per_channel(op: &PerChannel) -> TokenStream {
    let [pixels, channels] = [op.pixels, op.channels].map(number);
    quote!(nk::PerChannel { pixels: #pixels, channels: #channels })
}

pub(super) fn upsample2x(op: &Upsample2x) -> TokenStream {
    let [height, width, channels] = [op.in_h, op.in_w, op.channels].map(number);
    quote!(nk::Upsample2x { in_h: #height, in_w: #width, channels: #channels })
}

pub(super) fn concat(op: &Concat) -> TokenStream {
    let outer = number(op.outer);
    let inner = op.inner.map(number);
    quote!(nk::Concat { outer: #outer, inner: [#(#inner),*] })
}

pub(super) fn activation(activation: Activation) -> TokenStream {
    match activation {
        Activation::None => quote!(nk::Activation::None),
        Activation::Relu => quote!(nk::Activation::Relu),
        Activation::Relu6 => quote!(nk::Activation::Relu6),
        Activation::LeakyRelu(alpha) => {
            let alpha = float(alpha);
            quote!(nk::Activation::LeakyRelu(#alpha))
        }
        Activation::Sigmoid => quote!(nk::Activation::Sigmoid),
        Activation::Tanh => quote!(nk::Activation::Tanh),
        Activation::Silu => quote!(nk::Activation::Silu),
        Activation::Gelu => quote!(nk::Activation::Gelu),
    }
}
