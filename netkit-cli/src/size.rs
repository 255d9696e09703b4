//! Sizes as people write and read them.

/// Parses `65536`, `64K`, `64KiB`, `1.5M`, `1G`: powers of 1024, in any case.
pub(crate) fn parse(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1u64,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return Err(format!("unknown unit {unit:?}; write for example 64K, 64KiB or 1M")),
    };
    let bytes = match number.parse::<u64>() {
        Ok(number) => number.checked_mul(factor),
        Err(_) => match number.parse::<f64>() {
            Ok(number) if number.is_finite() => Some((number * factor as f64) as u64),
            _ => return Err(format!("{text:?} is no size; write for example 64K, 64KiB or 1M")),
        },
    };
    bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|&bytes| bytes <= isize::MAX as usize)
        .ok_or_else(|| format!("{text} does not fit the address space"))
}

/// `27,040 bytes (26.4 KiB)`.
pub(crate) fn bytes(count: usize) -> String {
    let exact = format!("{} bytes", grouped(count as u64));
    match count {
        1 => "1 byte".to_owned(),
        0..1024 => exact,
        1024..1_048_576 => format!("{exact} ({:.1} KiB)", count as f64 / 1024.0),
        _ => format!("{exact} ({:.1} MiB)", count as f64 / 1_048_576.0),
    }
}

/// `2,631,040`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, expected) in [
            ("65536", 65536),
            ("64K", 65536),
            ("64KiB", 65536),
            ("64 kb", 65536),
            ("1.5M", 1_572_864),
            ("1G", 1 << 30),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        for text in ["", "K", "-1", "1T", "64 KiBi", "1e9", "NaN", "99999999999999999999G", "1.2.3"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(2_631_040), "2,631,040");
        assert_eq!(bytes(27_040), "27,040 bytes (26.4 KiB)");
    }
}
