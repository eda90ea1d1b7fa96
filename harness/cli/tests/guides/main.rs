//! Runs the commands of the README and of every guide in `harness/guides` in order, with one
//! working directory per guide.
//!
//! Commands are blocks of `sh`, and the `run:` keys in blocks of `yaml`, which are jobs with their
//! own machine. Words after the language of a block are options:
//!
//! | option | meaning |
//! | --- | --- |
//! | `exit=1` | exit status of the last command; by default, all commands exit with 0 |
//! | `needs=kind,man` | requirements; without them, the block is ignored with the reason |
//! | `makes=lab`, `needs=lab` | the second block is ignored if the first one is |
//! | `needs=served` | the block gets a served embedded cluster |
//! | `ends=interrupted` | the command runs until it is interrupted after some seconds |
//! | `file=.ci/prow/evictlab-periodics.yaml` | the file that contains the same lines |
//! | `inputs.select=message` | value of `${{ inputs.select }}`; `+` is a space |
//!
//! A block of `text` is the expected output of the previous block: every line must occur, with any
//! numbers, and `…` matches any text.
//!
//! If a block fails, the rest of its guide is ignored. To run one guide:
//! `cargo test --test guides ten-minutes`.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

mod block;
mod needs;
mod output;
mod place;
mod promises;
mod served;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex};

use block::Block;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use place::Place;

/// State of a guide.
struct Guide {
    place: Option<Place>,
    /// Name of the block that failed.
    failed: Option<String>,
    /// Results of the blocks that ran.
    made: BTreeSet<String>,
    /// Number of blocks that ran: each waits for those before it.
    done: usize,
    /// Number of all blocks.
    all: usize,
}

/// Returns the directory of the project.
fn project() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().unwrap()
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let entries = fs::read_dir(project().join("harness/guides")).unwrap();
    let is_guide =
        |path: &PathBuf| path.extension().is_some_and(|end| end == "md") && !path.ends_with("SUMMARY.md");
    let entries = entries.map(|entry| entry.unwrap().path()).filter(is_guide);
    let mut guides: Vec<_> = entries.chain([project().join("README.md")]).collect();
    guides.sort();
    // In parallel, since most commands wait for a cluster, except with kind: the machine may not
    // have the memory for two clusters.
    let threads = if needs::has_kind() { 1 } else { guides.len() };
    arguments.test_threads = Some(arguments.test_threads.map_or(threads, |given| given.min(threads)));
    let trials = guides.into_iter().map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let blocks = Block::all(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        of_guide(&name, blocks, &arguments)
    });
    let promises = Trial::test("every promise to a cluster names a test", || {
        promises::check(&project()).map_err(Failed::from)
    });
    let trials = in_turns(trials.collect()).into_iter().chain([promises]).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Returns the first block of each guide, then the second ones, and so on: a block that waits for
/// another one of its guide would keep a thread.
fn in_turns(guides: Vec<Vec<Trial>>) -> Vec<Trial> {
    let mut guides: Vec<_> = guides.into_iter().map(Vec::into_iter).collect();
    let longest = guides.iter().map(ExactSizeIterator::len).max().unwrap_or_default();
    (0..longest).flat_map(|_| guides.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>()).collect()
}

/// Returns a trial for each block.
fn of_guide(name: &str, blocks: Vec<Block>, arguments: &Arguments) -> Vec<Trial> {
    let guide = Guide { place: None, failed: None, made: BTreeSet::new(), done: 0, all: 0 };
    let shared = Arc::new((Mutex::new(guide), Condvar::new()));
    let trial = |block: Block| {
        let title = format!("{name}:{} {}", block.line, block.title());
        let (own, shared) = (title.clone(), shared.clone());
        let mut guide = shared.0.lock().unwrap();
        let number = guide.all;
        let of_block = shared.clone();
        let trial = Trial::ignorable_test(title, move || {
            let (guide, changed) = &*of_block;
            let is_early = |guide: &mut Guide| guide.done < number;
            let mut guide = changed.wait_while(guide.lock().unwrap(), is_early).unwrap();
            let done = follow(&mut guide, &block, &own);
            changed.notify_all();
            done
        });
        guide.all += usize::from(!arguments.is_filtered_out(&trial));
        drop(guide);
        trial
    };
    blocks.into_iter().map(trial).collect()
}

/// Runs one block, or returns why it is ignored.
fn follow(guide: &mut Guide, block: &Block, name: &str) -> Result<Completion, Failed> {
    guide.done += 1;
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
    if guide.done == guide.all || done.is_err() {
        guide.place = None;
    }
    done.map_err(Failed::from)
}
