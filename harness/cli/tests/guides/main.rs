//! Runs every command of `harness/guides`, in order, a guide in a folder of its own.
//!
//! Commands are the blocks of `sh`, and what `run:` says in those of `yaml`, which are jobs with a machine of their own. A block may say in
//! the words behind its language
//!
//! | words | meaning |
//! | --- | --- |
//! | `exit=1` | the exit status, of its last command; without it, every command ends with 0 |
//! | `needs=kind,man` | what not every machine has; where it is missing, the block is ignored and says why |
//! | `makes=lab`, `needs=lab` | the second block is ignored where the first one was |
//! | `needs=served` | an embedded cluster is served to it |
//! | `ends=interrupted` | it goes on until it is interrupted, which it is after some seconds |
//! | `file=.ci/prow/evictlab-periodics.yaml` | its lines are that file's |
//! | `inputs.select=message` | what stands for `${{ inputs.select }}`; `+` is a space |
//!
//! A block of `text` is what the one before prints: each of its lines is there, whatever the numbers are, and `…` stands for anything.
//!
//! A block that fails ends its guide: the rest is ignored. To run one guide: `cargo test --test guides ten-minutes`.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

mod block;
mod needs;
mod output;
mod place;
mod served;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use block::Block;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use place::Place;

/// A guide that is being followed.
struct Guide {
    place: Option<Place>,
    /// The name of the block that failed.
    failed: Option<String>,
    /// What blocks have made that were run.
    made: BTreeSet<String>,
    left: usize,
}

/// The project's own folder.
fn project() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().unwrap()
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // A guide's blocks build on each other.
    arguments.test_threads = Some(1);
    let entries = fs::read_dir(project().join("harness/guides")).unwrap();
    let mut guides: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    guides.sort();
    let trials = guides.into_iter().flat_map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let blocks = Block::all(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        assert!(!blocks.is_empty(), "{} has no commands", path.display());
        of_guide(&name, blocks, &arguments)
    });
    let trials = trials.collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A trial for each block.
fn of_guide(name: &str, blocks: Vec<Block>, arguments: &Arguments) -> Vec<Trial> {
    let guide = Arc::new(Mutex::new(Guide { place: None, failed: None, made: BTreeSet::new(), left: 0 }));
    let trial = |block: Block| {
        let title = format!("{name}:{} {}", block.line, block.title());
        let (shared, own) = (guide.clone(), title.clone());
        Trial::ignorable_test(title, move || follow(&mut shared.lock().unwrap(), &block, &own))
    };
    let trials: Vec<_> = blocks.into_iter().map(trial).collect();
    guide.lock().unwrap().left = trials.iter().filter(|trial| !arguments.is_filtered_out(trial)).count();
    trials
}

/// Runs one block, or says why not.
fn follow(guide: &mut Guide, block: &Block, name: &str) -> Result<Completion, Failed> {
    guide.left -= 1;
    let done = match (&guide.failed, needs::missing(block, &guide.made)) {
        (Some(before), _) => Ok(Completion::ignored_with(format!("{before} failed"))),
        (None, why) => block.is_from_its_file().and_then(|()| match why {
            Some(why) => Ok(Completion::ignored_with(why)),
            None if block.is_a_job => Place::new().run(block).map(|()| Completion::Completed),
            None => guide.place.get_or_insert_with(Place::new).run(block).map(|()| Completion::Completed),
        }),
    };
    if matches!(&done, Ok(Completion::Completed)) {
        guide.made.extend(block.makes.clone());
    }
    if done.is_err() {
        guide.failed = Some(name.to_owned());
    }
    if guide.left == 0 || done.is_err() {
        guide.place = None;
    }
    done.map_err(Failed::from)
}
