//! Kernels, strides and paddings as the records store them (section 5), decoded and encoded.

/// Where a window of an operator lies on its input: extent, step and padding of each axis.
///
/// Output row `o` reads input rows `o · stride − top + i` for `i` in `0..kernel_h`; columns
/// likewise.
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

/// The excess of the end over the start padding, rows in the low nibble, or `None` where it is not
/// 0 to 15.
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

/// The bytes `pad_h`, `pad_w` and `pad_extra` of a conv2d record, or `None` where the window cannot
/// be stored: it is not square, a start padding exceeds 255, or an end padding is less than its
/// start or exceeds it by more than 15.
pub fn encode_conv2d(geometry: &Geometry) -> Option<(u8, u8, u8)> {
    let (pad_h, pad_w) = start_pads(geometry)?;
    let extra = pad_extra(geometry)?;
    (decode_conv2d(geometry.kernel_h, geometry.stride, pad_h, pad_w, extra) == *geometry)
        .then_some((pad_h, pad_w, extra))
}

/// Section 5.2: the window of a depthwise record, whose last byte is the kernel's width or its
/// padding's excess. Which of them, only the number of weights tells. `None` where they make up no
/// kernel.
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

/// The bytes `pad_h`, `pad_w` and `kw_byte` of a depthwise record, or `None` where the window
/// cannot be stored.
///
/// Besides the limits of [`encode_conv2d`], a kernel wider than 255 has no byte, and some
/// asymmetric windows would read back as symmetric ones because their padding byte equals their
/// width.
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

/// The fields `pad_h`, `pad_w` and `pool_extra` of a pool record, or `None` where the window cannot
/// be stored: it is not square and wider than 255, or beyond the limits of [`encode_conv2d`].
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Kernel, then top, left, bottom and right padding, with stride 2.
    fn geometry(kernel: [u32; 2], pads: [u32; 4]) -> Geometry {
        let ([kernel_h, kernel_w], [top, left, bottom, right]) = (kernel, pads);
        Geometry { kernel_h, kernel_w, stride: 2, top, left, bottom, right }
    }

    #[test]
    fn conv2d_padding_is_a_start_and_an_excess() {
        let cases = [
            ([0, 0, 0, 0], Some((0, 0, 0))),
            ([1, 2, 1, 2], Some((1, 2, 0))),
            ([1, 1, 2, 1], Some((1, 1, 0x01))),
            ([0, 3, 15, 18], Some((0, 3, 0xff))),
            ([255, 0, 255, 1], Some((255, 0, 0x10))),
            ([256, 0, 256, 0], None),
            ([0, 0, 16, 0], None),
        ];
        for (pads, stored) in cases {
            let geometry = geometry([3, 3], pads);
            assert_eq!(encode_conv2d(&geometry), stored, "{pads:?}");
            if let Some((pad_h, pad_w, extra)) = stored {
                assert_eq!(decode_conv2d(3, 2, pad_h, pad_w, extra), geometry);
            }
        }
    }

    #[test]
    fn what_conv2d_cannot_store_is_refused() {
        assert_eq!(encode_conv2d(&geometry([3, 3], [1, 1, 0, 1])), None, "end before start");
        assert_eq!(encode_conv2d(&geometry([3, 5], [1, 1, 1, 1])), None, "not square");
    }

    #[test]
    fn a_depthwise_byte_is_a_width_or_an_excess() {
        // kernel_h, byte, weights of a channel; the kernel's width and the excess, or nothing. Pads
        // are 1 and 1.
        let cases = [
            (3, 3, 9, Some((3, 0, 0))),
            (3, 0, 9, Some((3, 0, 0))),
            // The shipped file with asymmetric depthwise padding: extra bottom 1.
            (3, 0x01, 9, Some((3, 1, 0))),
            (3, 0x21, 9, Some((3, 1, 2))),
            (3, 5, 15, Some((5, 0, 0))),
            (3, 1, 3, Some((1, 0, 0))),
            (3, 0x10, 15, Some((5, 0, 1))),
            (1, 255, 255, Some((255, 0, 0))),
            (3, 0, 15, None),
            (3, 4, 10, None),
            (0, 3, 9, None),
            (65536, 1, 65536, Some((1, 0, 0))),
        ];
        for (kernel_h, byte, area, meant) in cases {
            let decoded = decode_depthwise(kernel_h, 2, 1, 1, byte, 4, 4 * area);
            let expected = meant.map(|(width, rows, columns)| {
                geometry([kernel_h, width], [1, 1, 1 + rows, 1 + columns])
            });
            assert_eq!(decoded, expected, "{kernel_h} {byte} {area}");
        }
        assert_eq!(decode_depthwise(3, 2, 1, 1, 3, 0, 0), None, "no channels");
        assert_eq!(decode_depthwise(3, 2, 1, 1, 3, 2, 9), None, "weights do not divide");
    }

    #[test]
    fn an_ambiguous_depthwise_byte_is_not_written() {
        assert_eq!(
            encode_depthwise(&geometry([3, 3], [1, 1, 4, 1])),
            None,
            "byte 3 reads as a width"
        );
        assert_eq!(
            encode_depthwise(&geometry([3, 1], [1, 1, 2, 1])),
            None,
            "byte 1 reads as a width"
        );
        assert_eq!(encode_depthwise(&geometry([1, 256], [0, 0, 0, 0])), None, "too wide");
        assert_eq!(encode_depthwise(&geometry([3, 0], [0, 0, 1, 0])), None, "no kernel");
    }

    #[test]
    fn what_is_encoded_decodes_the_same() {
        let mut refused = 0;
        for kernel_h in 1..=6 {
            for kernel_w in 1..=18 {
                for excess in 0..=255 {
                    let pads = [2, 1, 2 + (excess & 15), 1 + (excess >> 4)];
                    let geometry = geometry([kernel_h, kernel_w], pads);
                    match encode_depthwise(&geometry) {
                        Some((pad_h, pad_w, byte)) => {
                            let area = kernel_h * kernel_w;
                            let read =
                                decode_depthwise(kernel_h, 2, pad_h, pad_w, byte, 7, 7 * area);
                            assert_eq!(read, Some(geometry));
                        }
                        // The byte of the excess equals the width, and says that instead.
                        None => {
                            assert_eq!(excess, kernel_w);
                            refused += 1;
                        }
                    }
                    let pool = encode_pool(&geometry).unwrap();
                    assert_eq!(decode_pool(kernel_h, 2, pool.0, pool.1, pool.2), geometry);
                }
            }
        }
        assert_eq!(refused, 6 * 18);
    }

    #[test]
    fn a_pool_stores_its_width_and_excess_in_one_field() {
        assert_eq!(encode_pool(&geometry([2, 2], [0, 0, 0, 0])), Some((0, 0, 0)));
        assert_eq!(encode_pool(&geometry([2, 3], [0, 0, 0, 0])), Some((0, 0, 3)));
        assert_eq!(encode_pool(&geometry([2, 3], [0, 1, 1, 3])), Some((0, 1, 0x2103)));
        assert_eq!(encode_pool(&geometry([300, 300], [0, 0, 0, 0])), Some((0, 0, 0)));
        assert_eq!(encode_pool(&geometry([2, 256], [0, 0, 0, 0])), None);
        assert_eq!(encode_pool(&geometry([0, 0], [0, 0, 0, 0])), Some((0, 0, 0)));
        // A stored width equal to the height reads the same as none.
        assert_eq!(decode_pool(2, 2, 0, 0, 2), geometry([2, 2], [0, 0, 0, 0]));
    }
}
