//! Output that does not wait for its reader.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use evictlab_rules::quantity::MIB;

use crate::run_state::RunState;
use crate::sink::{Report, ReportError};

/// Maximum amount of queued output, in bytes. Output beyond it is discarded, with a note.
const MAX_QUEUED: usize = 16 * MIB as usize;

/// Time without progress after which an interrupted run does not wait for the reader any longer.
const READER_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval at which a run that waits for the reader looks for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The number of interrupts so far. Unlike the events of a run, it also counts those that arrive
/// after the run has ended, while its output waits for the reader. Clones share the number.
#[derive(Clone, Debug, Default)]
pub struct InterruptStage(Arc<AtomicU8>);

impl InterruptStage {
    /// Sets the number of interrupts.
    pub fn set(&self, stage: u8) {
        self.0.store(stage, Ordering::Relaxed);
    }

    /// Returns whether the run was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// A writer that queues output for a thread, which writes it. A reader that does not read, such as
/// a stopped terminal or a pager, blocks only that thread: files are written, cases continue, and
/// interrupts are handled. Clones share the queue.
#[derive(Clone, Debug)]
pub(crate) struct OutputQueue {
    sender: Sender<Vec<u8>>,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes that are queued or being written.
    queued: usize,
    /// Bytes that were discarded since the last note.
    discarded: usize,
    /// The error that ended the output.
    error: Option<io::Error>,
}

impl Progress {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputQueue {
    /// Starts the thread that writes to `out`.
    ///
    /// # Errors
    /// The thread could not be started.
    pub(crate) fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let progress = Arc::new(Progress::default());
        let shared = Arc::clone(&progress);
        thread::Builder::new().name("output".to_owned()).spawn(move || copy(&receiver, out, &shared))?;
        Ok(Self { sender, progress })
    }

    /// Waits until everything is written; from the time at which `is_limited` returns true, until
    /// nothing was written for a limit.
    ///
    /// # Errors
    /// The output could not be written, or it was not read.
    fn wait_until_written(&self, limit: Duration, is_limited: impl Fn() -> bool) -> io::Result<()> {
        let mut state = self.progress.state();
        let (mut queued, mut idle_since) = (state.queued, Instant::now());
        while state.queued > 0 && state.error.is_none() {
            let poll = POLL_INTERVAL.min(limit);
            let waited = self.progress.changed.wait_timeout(state, poll);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.queued != queued || !is_limited() {
                (queued, idle_since) = (state.queued, Instant::now());
            } else if idle_since.elapsed() >= limit {
                let seconds = limit.as_secs();
                return Err(io::Error::other(format!("standard output was not read for {seconds} s")));
            }
        }
        state.error.take().map_or(Ok(()), Err)
    }
}

impl Write for OutputQueue {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.progress.state();
        if let Some(error) = &state.error {
            return Err(io::Error::new(error.kind(), error.to_string()));
        }
        // A document is one text, of any size.
        if state.queued > 0 && state.queued + bytes.len() > MAX_QUEUED {
            state.discarded += bytes.len();
            return Ok(bytes.len());
        }
        let mut text = Vec::new();
        if state.discarded > 0 {
            writeln!(text, "({} bytes of output were not read in time and discarded)", state.discarded)?;
            state.discarded = 0;
        }
        text.extend_from_slice(bytes);
        state.queued += text.len();
        drop(state);
        // The thread ends only after an error, which the next call reports.
        let _ = self.sender.send(text);
        Ok(bytes.len())
    }

    /// Does nothing: the thread flushes what it has written.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a text and waits for its reader; after an interrupt, until nothing was read for 5 s.
///
/// # Errors
/// The text could not be written, or it was not read.
pub fn write_until_interrupt(
    text: &str,
    out: impl Write + Send + 'static,
    interrupts: &InterruptStage,
) -> io::Result<()> {
    let mut queue = OutputQueue::start(out)?;
    queue.write_all(text.as_bytes())?;
    queue.wait_until_written(READER_TIMEOUT, || interrupts.is_interrupted())
}

/// Writes what it receives, until an error.
fn copy(receiver: &Receiver<Vec<u8>>, mut out: impl Write, progress: &Progress) {
    for text in receiver {
        let written = out.write_all(&text).and_then(|()| out.flush());
        let mut state = progress.state();
        state.queued -= text.len();
        let has_failed = written.is_err();
        state.error = written.err();
        progress.changed.notify_all();
        if has_failed {
            return;
        }
    }
}

/// Waits at the end of a run until its output is written, without a limit unless the run is
/// interrupted, before its end or now.
#[derive(Debug)]
pub(crate) struct AwaitOutput {
    pub(crate) output: OutputQueue,
    pub(crate) interrupts: InterruptStage,
}

impl Report for AwaitOutput {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn finish(self: Box<Self>, run: &RunState) -> Result<(), ReportError> {
        let is_limited = || run.was_cut_short() || self.interrupts.is_interrupted();
        match self.output.wait_until_written(READER_TIMEOUT, is_limited) {
            // The reader closed the pipe (`| head`).
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => Ok(written?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::SyncSender;

    /// A reader that takes one write at a time.
    struct SlowReader(SyncSender<Vec<u8>>);

    impl Write for SlowReader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_owned()).map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn output_without_a_reader_does_not_block_and_is_complete_once_read() {
        let (sender, reader) = mpsc::sync_channel(0);
        let mut queue = OutputQueue::start(SlowReader(sender)).unwrap();
        (0..1000).for_each(|line| writeln!(queue, "line {line}").unwrap());
        let error = queue.wait_until_written(Duration::from_millis(20), || true).unwrap_err().to_string();
        assert!(error.contains("was not read"), "{error}");
        let reading = thread::spawn(move || reader.iter().flatten().collect::<Vec<u8>>());
        queue.wait_until_written(READER_TIMEOUT, || false).unwrap();
        drop(queue);
        let read = String::from_utf8(reading.join().unwrap()).unwrap();
        assert!(read.lines().eq((0..1000).map(|line| format!("line {line}"))), "{read}");
    }

    #[test]
    fn an_interrupt_ends_the_wait_for_the_reader() {
        let (sender, _reader) = mpsc::sync_channel(0);
        let mut queue = OutputQueue::start(SlowReader(sender)).unwrap();
        writeln!(queue, "unread").unwrap();
        let interrupts = InterruptStage::default();
        let (waiting, stage) = (queue.clone(), interrupts.clone());
        let limit = Duration::from_millis(20);
        let wait = thread::spawn(move || waiting.wait_until_written(limit, || stage.is_interrupted()));
        thread::sleep(limit * 10);
        assert!(!wait.is_finished(), "without an interrupt, the wait has no limit");
        interrupts.set(1);
        assert!(wait.join().unwrap().unwrap_err().to_string().contains("was not read"));
    }

    #[test]
    fn output_beyond_the_limit_is_discarded_with_a_note() {
        let (sender, reader) = mpsc::sync_channel(0);
        let mut queue = OutputQueue::start(SlowReader(sender)).unwrap();
        let mebibyte = vec![b'.'; 1 << 20];
        (0..20).for_each(|_| queue.write_all(&mebibyte).unwrap());
        let reading = thread::spawn(move || reader.iter().flatten().collect::<Vec<u8>>());
        queue.wait_until_written(READER_TIMEOUT, || false).unwrap();
        writeln!(queue, "end").unwrap();
        queue.wait_until_written(READER_TIMEOUT, || false).unwrap();
        drop(queue);
        let read = reading.join().unwrap();
        let note = "(4194304 bytes of output were not read in time and discarded)\nend\n";
        assert!(read.ends_with(note.as_bytes()) && read.len() == (16 << 20) + note.len());
    }

    #[test]
    fn one_text_may_be_longer_than_the_queue() {
        let (sender, reader) = mpsc::sync_channel(0);
        let reading = thread::spawn(move || reader.iter().flatten().count());
        let text = ".".repeat(17 << 20);
        write_until_interrupt(&text, SlowReader(sender), &InterruptStage::default()).unwrap();
        assert_eq!(reading.join().unwrap(), text.len());
    }

    #[test]
    fn a_closed_pipe_is_reported_to_the_writer() {
        let (sender, reader) = mpsc::sync_channel(0);
        drop(reader);
        let mut queue = OutputQueue::start(SlowReader(sender)).unwrap();
        writeln!(queue, "lost").unwrap();
        while queue.progress.state().error.is_none() {
            thread::yield_now();
        }
        assert_eq!(writeln!(queue, "lost").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        let run = RunState::default();
        let interrupts = InterruptStage::default();
        assert!(Box::new(AwaitOutput { output: queue, interrupts }).finish(&run).is_ok());
    }
}
