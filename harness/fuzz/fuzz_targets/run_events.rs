//! The events of any run are read or rejected with their line, and can be drawn as a page, which
//! has only its own script, and compared.

#![no_main]

use std::path::Path;

use evictlab_report::{EvidenceBase, RecordedRun, compare, page};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // A directory without evidence.
    let dir = Path::new("/nonexistent");
    match RecordedRun::from_events(dir, text) {
        Ok(run) => {
            let page = page(&run, &EvidenceBase::none()).expect("a run without evidence has a page");
            let lower = page.to_ascii_lowercase();
            assert!(lower.matches("<script").count() == 1 && !lower.contains("href=\"javascript:"));
            assert!(!compare(&run, &run).render().contains('\u{1b}'));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
