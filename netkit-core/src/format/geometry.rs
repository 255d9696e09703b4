//! Kernels, strides and paddings as the records store them (section 5), decoded and encoded.

/// Where a window of an operator lies on its input: extent, step and padding of each axis.
///
/// Output row `o` reads input rows `o · stride − top + i` for `i` in `0..kernel_h`; columns likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Rows of the geometry.
    pub kernel_h: u32,
    /// Columns of the geometry.
    pub kernel_w: u32,
    /// Step on both axes.
    pub stride: u32,
    /// Rows of padding before the first.
    pub top: u32,
    /// Columns of padding before the first.
    pub left: u32,
    /// Rows of padding after the last.
    pub bottom: u32,
    /// Columns of padding after the last.
    pub right: u32,
}

impl Geometry {
    /// Whether the padding before equals the padding after, on both axes.
    pub const fn is_symmetric(&self) -> bool {
        self.top == self.bottom && self.left == self.right
    }
}

/// The end padding that a start padding and a nibble of excess make up.
const fn end(start: u8, excess: u32) -> u32 {
    start as u32 + excess
}

/// The excess of the end over the start padding, rows in the low nibble, or `None` where it is not 0 to 15.
fn pad_extra(geometry: &Geometry) -> Option<u8> {
    let rows = geometry.bottom.checked_sub(geometry.top).filter(|&excess| excess <= 15)?;
    let columns = geometry.right.checked_sub(geometry.left).filter(|&excess| excess <= 15)?;
    Some((rows | columns << 4) as u8)
}

fn start_pads(geometry: &Geometry) -> Option<(u8, u8)> {
    Some((geometry.top.try_into().ok()?, geometry.left.try_into().ok()?))
}

/// Section 5.1: the window of a conv2d record.
pub const fn decode_conv2d(
    kernel_size: u32,
    stride: u32,
    pad_h: u8,
    pad_w: u8,
    pad_extra: u8,
) -> Geometry {
    Geometry {
        kernel_h: kernel_size,
        kernel_w: kernel_size,
        stride,
        top: pad_h as u32,
        left: pad_w as u32,
        bottom: end(pad_h, (pad_extra & 15) as u32),
        right: end(pad_w, (pad_extra >> 4) as u32),
    }
}

/// The bytes `pad_h`, `pad_w` and `pad_extra` of a conv2d record, or `None` where the window cannot be stored: it is
/// not square, a start padding exceeds 255, or an end padding is less than its start or exceeds it by more than 15.
pub fn encode_conv2d(geometry: &Geometry) -> Option<(u8, u8, u8)> {
    let (pad_h, pad_w) = start_pads(geometry)?;
    let extra = pad_extra(geometry)?;
    (decode_conv2d(geometry.kernel_h, geometry.stride, pad_h, pad_w, extra) == *geometry)
        .then_some((pad_h, pad_w, extra))
}

/// Section 5.2: the window of a depthwise record, whose last byte is the kernel's width or its padding's excess.
/// Which of them, only the number of weights tells. `None` where they make up no kernel.
pub fn decode_depthwise(
    kernel_h: u32,
    stride: u32,
    pad_h: u8,
    pad_w: u8,
    kw_byte: u8,
    channels: u32,
    weight_elements: u32,
) -> Option<Geometry> {
    if kernel_h == 0
        || channels == 0
        || weight_elements == 0
        || !weight_elements.is_multiple_of(channels)
    {
        return None;
    }
    let area = weight_elements / channels;
    let square = u64::from(area) == u64::from(kernel_h) * u64::from(kernel_h);
    let byte = u32::from(kw_byte);
    let (kernel_w, symmetric) = if square {
        (kernel_h, byte == kernel_h)
    } else if kw_byte != 0 && u64::from(area) == u64::from(kernel_h) * u64::from(byte) {
        (byte, true)
    } else if kw_byte != 0 && area.is_multiple_of(kernel_h) {
        (area / kernel_h, false)
    } else {
        return None;
    };
    let extra = if symmetric { 0 } else { kw_byte };
    Some(Geometry { kernel_w, ..decode_conv2d(kernel_h, stride, pad_h, pad_w, extra) })
}

/// The bytes `pad_h`, `pad_w` and `kw_byte` of a depthwise record, or `None` where the window cannot be stored.
///
/// Besides the limits of [`encode_conv2d`], a kernel wider than 255 has no byte, and some asymmetric windows would
/// read back as symmetric ones because their padding byte equals their width.
pub fn encode_depthwise(geometry: &Geometry) -> Option<(u8, u8, u8)> {
    let (pad_h, pad_w) = start_pads(geometry)?;
    let kw_byte = match pad_extra(geometry)? {
        0 => u8::try_from(geometry.kernel_w).ok()?,
        extra => extra,
    };
    let area = geometry.kernel_h.checked_mul(geometry.kernel_w)?;
    let read =
        decode_depthwise(geometry.kernel_h, geometry.stride, pad_h, pad_w, kw_byte, 1, area)?;
    (read == *geometry).then_some((pad_h, pad_w, kw_byte))
}

/// Section 5.3: the window of a pool record.
pub const fn decode_pool(
    pool_size: u32,
    stride: u32,
    pad_h: u8,
    pad_w: u8,
    pool_extra: u16,
) -> Geometry {
    let width = (pool_extra & 0xff) as u32;
    Geometry {
        kernel_h: pool_size,
        kernel_w: if width == 0 { pool_size } else { width },
        stride,
        top: pad_h as u32,
        left: pad_w as u32,
        bottom: end(pad_h, (pool_extra >> 8 & 15) as u32),
        right: end(pad_w, (pool_extra >> 12) as u32),
    }
}

/// The fields `pad_h`, `pad_w` and `pool_extra` of a pool record, or `None` where the window cannot be stored: it is
/// not square and wider than 255, or beyond the limits of [`encode_conv2d`].
pub fn encode_pool(geometry: &Geometry) -> Option<(u8, u8, u16)> {
    let (pad_h, pad_w) = start_pads(geometry)?;
    let width = if geometry.kernel_w == geometry.kernel_h {
        0
    } else {
        u8::try_from(geometry.kernel_w).ok()?
    };
    let extra = u16::from(pad_extra(geometry)?) << 8 | u16::from(width);
    (decode_pool(geometry.kernel_h, geometry.stride, pad_h, pad_w, extra) == *geometry)
        .then_some((pad_h, pad_w, extra))
}
