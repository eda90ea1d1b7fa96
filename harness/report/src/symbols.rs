//! One character for each verdict, for tables with many cells.

use evictlab_judge::Verdict;

/// Verdicts with their symbols.
const SYMBOLS: [(Verdict, char); 8] = [
    (Verdict::Passed, '.'),
    (Verdict::Reproduced, 'r'),
    (Verdict::Fixed, 'x'),
    (Verdict::Flaky, '~'),
    (Verdict::Failed, 'F'),
    (Verdict::Inconclusive, '?'),
    (Verdict::Error, 'E'),
    (Verdict::Skipped, '-'),
];

/// Symbol of a case without a verdict.
pub(crate) const NOT_RUN: char = '!';

/// The symbol of a verdict.
pub(crate) fn symbol(verdict: Verdict) -> char {
    SYMBOLS.iter().find(|(candidate, _)| *candidate == verdict).map_or(NOT_RUN, |(_, symbol)| *symbol)
}

/// The verdict of a symbol.
pub(crate) fn verdict(symbol: char) -> Option<Verdict> {
    SYMBOLS.iter().find(|(_, character)| *character == symbol).map(|(verdict, _)| *verdict)
}

/// The legend of the symbols that occur: `` `.` passed, `F` failed ``.
pub(crate) fn legend(occurs: impl Fn(char) -> bool) -> String {
    let verdicts = SYMBOLS.iter().map(|(verdict, symbol)| (*symbol, verdict.to_string()));
    let all = verdicts.chain([(NOT_RUN, "not run".to_owned())]);
    let parts: Vec<String> = all
        .filter(|(symbol, _)| occurs(*symbol))
        .map(|(symbol, name)| format!("`{symbol}` {name}"))
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_distinct_and_explained() {
        for (meaning, character) in SYMBOLS {
            assert_eq!((symbol(meaning), verdict(character)), (character, Some(meaning)));
        }
        assert_eq!(verdict(NOT_RUN), None);
        assert_eq!(legend(|symbol| "F.!".contains(symbol)), "`.` passed, `F` failed, `!` not run");
    }
}
