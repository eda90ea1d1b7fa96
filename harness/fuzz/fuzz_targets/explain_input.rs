//! Objects and texts of any content are explained or rejected, and no explanation has a character
//! that controls a terminal once it is printed.

#![no_main]

use evictlab_explain::{Input, explain};
use evictlab_report::text::{visible, without_workflow_commands};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let output = match Input::read(text) {
        Ok(input) => match explain(&input, None) {
            Ok(explanations) => {
                let json = serde_json::to_string(&explanations).expect("explanations are serializable");
                let texts: Vec<String> = explanations.iter().map(ToString::to_string).collect();
                texts.join("\n") + &json
            }
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    let printed = visible(&output);
    let printed = without_workflow_commands(&printed);
    assert!(!printed.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    assert!(!printed.lines().any(|line| line.trim_start().starts_with("::")));
});
