//! The command blocks of a guide.

use std::collections::BTreeMap;
use std::fs;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use serde_yaml::Value;

use crate::needs::OF_THE_MACHINE;
use crate::project;

/// A block of commands with its options.
pub struct Block {
    /// Line in the guide, from 1.
    pub line: usize,
    /// Shell script.
    pub script: String,
    /// Text in the guide.
    pub text: String,
    /// True for a job of a workflow, which starts with a fresh checkout.
    pub is_a_job: bool,
    /// Expected exit status of the last command.
    pub exit: i32,
    /// Requirements: of the machine, or results of other blocks.
    pub needs: Vec<String>,
    /// Result that other blocks need.
    pub makes: Option<String>,
    /// File that contains the same lines.
    pub file: Option<String>,
    /// True for a command that runs until an interrupt.
    pub endless: bool,
    /// Expected output.
    pub printed: Option<String>,
}

impl Block {
    /// Returns the blocks of a guide in order.
    pub fn all(guide: &str) -> Result<Vec<Self>, String> {
        let mut blocks: Vec<Self> = Vec::new();
        let mut info = None;
        let mut text = String::new();
        let mut before = "";
        for (event, at) in Parser::new(guide).into_offset_iter() {
            match event {
                Event::Start(Tag::CodeBlock(kind)) => {
                    let line = guide[..at.start].matches('\n').count() + 1;
                    let CodeBlockKind::Fenced(words) = kind else {
                        return Err(format!("line {line}: a block without a language"));
                    };
                    info = Some((line, words.to_string()));
                    text.clear();
                }
                Event::Text(part) if info.is_some() => text.push_str(&part),
                Event::End(TagEnd::CodeBlock) => {
                    let (line, words) = info.take().ok_or("an end without a beginning")?;
                    let located = |why: String| format!("line {line}: {why}");
                    match words.split_whitespace().next() {
                        Some("sh" | "yaml") => blocks.push(Self::new(line, &words, &text).map_err(located)?),
                        Some("text") if before == "commands" => {
                            blocks.last_mut().ok_or("output of nothing")?.printed = Some(text.clone());
                        }
                        _ => {
                            return Err(located(format!(
                                "`{words}` are neither commands nor `text` behind them"
                            )));
                        }
                    }
                    before = if words == "text" { "output" } else { "commands" };
                }
                _ => {}
            }
        }
        match blocks.iter().enumerate().find_map(|(at, block)| block.lacks(&blocks[..at])) {
            Some(why) => Err(why),
            None => Ok(blocks),
        }
    }

    /// Returns an error for a requirement that no previous block provides.
    fn lacks(&self, before: &[Self]) -> Option<String> {
        let made = |need: &str| before.iter().any(|other| other.makes.as_deref() == Some(need));
        let mut needs = self.needs.iter();
        let need = needs.find(|need| !OF_THE_MACHINE.contains(&need.as_str()) && !made(need))?;
        Some(format!("line {}: no block before it makes `{need}`", self.line))
    }

    fn new(line: usize, info: &str, text: &str) -> Result<Self, String> {
        let mut block = Self {
            line,
            script: text.to_owned(),
            text: text.to_owned(),
            is_a_job: info.starts_with("yaml"),
            exit: 0,
            needs: vec![],
            makes: None,
            file: None,
            endless: false,
            printed: None,
        };
        let mut inputs = BTreeMap::new();
        for word in info.split_whitespace().skip(1) {
            let (key, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not KEY=VALUE"))?;
            match key {
                "exit" => {
                    block.exit = value.parse().map_err(|_| format!("`{word}` is not an exit status"))?
                }
                "needs" => block.needs = value.split(',').map(str::to_owned).collect(),
                "makes" => block.makes = Some(value.to_owned()),
                "ends" if value == "interrupted" => block.endless = true,
                "file" => block.file = Some(value.to_owned()),
                key if key.contains('.') => {
                    inputs.insert(key.to_owned(), value.to_owned());
                }
                _ => return Err(format!("`{key}` means nothing here")),
            }
        }
        if block.is_a_job {
            let yaml: Value = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
            let mut commands = Vec::new();
            runs(&yaml, &mut commands);
            block.script = commands.join("\n");
        }
        for (key, value) in inputs {
            let written = format!("${{{{ {key} }}}}");
            if !block.script.contains(&written) {
                return Err(format!("{written} is nowhere in it"));
            }
            block.script = block.script.replace(&written, &value.replace('+', " "));
        }
        let is_run_by_github = block.needs.iter().any(|need| need == "github");
        if block.script.trim().is_empty() && !is_run_by_github || block.script.contains("${{") {
            return Err("it has no commands, or a `${{ … }}` for which nothing stands".to_owned());
        }
        Ok(block)
    }

    /// Requires that every line is in the named file.
    pub fn is_from_its_file(&self) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        let whole = fs::read_to_string(project().join(file)).map_err(|error| format!("{file}: {error}"))?;
        let lines: Vec<&str> = whole.lines().map(str::trim).collect();
        let strange = self.text.lines().map(str::trim).find(|line| !lines.contains(line));
        strange.map_or(Ok(()), |line| Err(format!("{file} has no line `{line}`")))
    }

    /// Returns the first command, shortened.
    pub fn title(&self) -> String {
        let commands = self.script.lines().filter(|line| !line.trim_start().starts_with('#'));
        let command = commands.map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        command.chars().take(70).collect()
    }
}

/// Collects the commands of all `run:` keys of a workflow.
fn runs(yaml: &Value, commands: &mut Vec<String>) {
    match yaml {
        Value::Sequence(items) => items.iter().for_each(|item| runs(item, commands)),
        Value::Mapping(entries) => {
            let variables = entries.get("env").filter(|_| entries.contains_key("run"));
            for (name, value) in variables.and_then(Value::as_mapping).into_iter().flatten() {
                if let (Some(name), Some(value)) = (name.as_str(), value.as_str()) {
                    commands.push(format!("export {name}='{value}'"));
                }
            }
            entries.iter().for_each(|(key, value)| match (key.as_str(), value.as_str()) {
                (Some("run"), Some(command)) => commands.push(command.to_owned()),
                _ => runs(value, commands),
            })
        }
        _ => {}
    }
}
