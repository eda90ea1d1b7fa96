//! Texts for a number of columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Truncates `text` to at most `width` columns; truncated text ends with an ellipsis.
pub(crate) fn truncate(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut left = width.saturating_sub(1);
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if wide > left {
            break;
        }
        left -= wide;
        kept.push(c);
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncates_by_columns() {
        for (text, width, cut) in [
            ("observe", 7, "observe"),
            ("observe", 4, "obs…"),
            ("観察する", 5, "観察…"),
            ("観察する", 4, "観…"),
            ("observe", 1, "…"),
            ("observe", 0, ""),
        ] {
            assert_eq!(truncate(text, width), cut);
        }
    }
}
