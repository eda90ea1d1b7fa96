//! The results of a run as lines of a log.
//!
//! A compressed archive in base64, each line with a random id, so that no other line of the log can
//! be mistaken for it. The last line has the number of lines and their checksum: a log that the
//! kubelet rotated lacks its first lines, which is an error instead of a smaller result.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use evictlab_cluster::sha256_hex;
use evictlab_report::{create_private, create_private_dir};
use evictlab_rules::quantity::{GIB, MIB};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tar::{Archive, Builder, EntryType, Header};

/// Start of each line.
const PREFIX: &str = "evictlab-results";
/// Bytes in a line. The runtime splits lines of more than 16 KiB.
const LINE_BYTES: usize = 3072;
/// Maximum size of a compressed archive. In base64, it is shorter than the log at which kubelets
/// rotate (`containerLogMaxSize`, 10Mi by default).
const MAX_COMPRESSED: usize = 6 * MIB as usize;
/// Maximum size of the unpacked files.
const MAX_UNPACKED: u64 = 2 * GIB;
/// Maximum size of an unpacked file: a larger one cannot be read as evidence.
const MAX_FILE: u64 = 256 * MIB;
/// Maximum number of files. All cases on ten kubelets have 40,000.
const MAX_FILES: usize = 200_000;
/// Maximum length of the path of a file. Systems allow 4096 bytes.
const MAX_PATH: u64 = 4096;

/// A log without complete results, or with invalid ones.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Lines are missing.
    #[error(
        "{found} of {expected} lines are there: the kubelet rotated the log\nhelp: raise containerLogMaxSize, or use more --indexes"
    )]
    Rotated {
        /// Number of lines that were found.
        found: usize,
        /// Number of lines that were written.
        expected: usize,
    },
    /// The lines are not those that were written.
    #[error("the lines are damaged: {0}")]
    Damaged(String),
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The results of a run, compressed.
pub struct PackedRun {
    compressed: Vec<u8>,
    /// True if the evidence of the cases was left out.
    pub without_evidence: bool,
}

impl PackedRun {
    /// Packs the files of a run directory. If they are too large for a log, the evidence of the
    /// cases is left out: the events, which contain all verdicts, remain.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn pack(dir: &Path) -> io::Result<Self> {
        Self::pack_within(dir, MAX_COMPRESSED)
    }

    fn pack_within(dir: &Path, limit: usize) -> io::Result<Self> {
        let compressed = compress(dir, usize::MAX)?;
        if compressed.len() <= limit {
            Ok(Self { compressed, without_evidence: false })
        } else {
            // Files in the directory itself, and in `artifacts`.
            Ok(Self { compressed: compress(dir, 2)?, without_evidence: true })
        }
    }

    /// Writes the lines. `id` is random.
    ///
    /// # Errors
    /// The output fails.
    pub fn write_lines(&self, id: &str, mut out: impl Write) -> io::Result<()> {
        let lines = self.compressed.chunks(LINE_BYTES);
        let count = lines.len();
        for line in lines {
            writeln!(out, "{PREFIX} {id} {}", STANDARD.encode(line))?;
        }
        writeln!(out, "{PREFIX} {id} end {count} {}", sha256_hex(&self.compressed))?;
        out.flush()
    }
}

/// Unpacks the last results in a log to `dir`, which is created. Returns `false` if the log does
/// not contain results: the run was killed.
///
/// # Errors
/// Lines are missing or damaged; a file cannot be written.
pub fn unpack(log: &str, dir: &Path) -> Result<bool, ArchiveError> {
    let lines = || log.lines().filter_map(|line| line.strip_prefix(PREFIX)?.strip_prefix(' '));
    let end = |line: &str| -> Option<(String, usize, String)> {
        let mut words = line.split(' ');
        let id = words.next()?.to_owned();
        words.next().filter(|word| *word == "end")?;
        Some((id, words.next()?.parse().ok()?, words.next()?.to_owned()))
    };
    let Some((id, expected, sum)) = lines().rev().find_map(end) else { return Ok(false) };
    let content = |line: &str| {
        let (line_id, content) = line.split_once(' ')?;
        (line_id == id && !content.contains(' ')).then(|| content.to_owned())
    };
    let found: Vec<String> = lines().filter_map(content).collect();
    if found.len() != expected {
        return Err(ArchiveError::Rotated { found: found.len(), expected });
    }
    let mut compressed = Vec::new();
    for line in found {
        let bytes = STANDARD.decode(&line).map_err(|error| ArchiveError::Damaged(error.to_string()))?;
        compressed.extend(bytes);
    }
    if sha256_hex(&compressed) != sum {
        return Err(ArchiveError::Damaged("the checksum differs".to_owned()));
    }
    extract(GzDecoder::new(&compressed[..]), dir)?;
    Ok(true)
}

/// Compresses the files of a directory, down to a depth.
fn compress(dir: &Path, depth: usize) -> io::Result<Vec<u8>> {
    let mut files = Vec::new();
    list(dir, Path::new(""), depth, &mut files)?;
    files.sort();
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for file in files {
        let content = fs::read(dir.join(&file))?;
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        builder.append_data(&mut header, &file, &content[..])?;
    }
    builder.into_inner()?.finish()
}

fn list(dir: &Path, below: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir.join(below))? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, below.join(entry.file_name()));
        if kind.is_dir() && depth > 1 {
            list(dir, &path, depth - 1, files)?;
        } else if kind.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// Extracts the files of an archive. Anything else, such as a link, is an error. The archive may be
/// another user's: the number of files, their sizes and their names are limited.
fn extract(archive: impl Read, dir: &Path) -> Result<(), ArchiveError> {
    let mut archive = Archive::new(archive.take(MAX_UNPACKED));
    let mut long_name = None;
    let mut files = 0;
    // Raw: otherwise a long name is read without a limit.
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        let (kind, size) = (entry.header().entry_type(), entry.size());
        if kind == EntryType::GNULongName && size <= MAX_PATH && long_name.is_none() {
            let mut name = Vec::new();
            entry.read_to_end(&mut name)?;
            name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
            long_name = Some(PathBuf::from(OsString::from_vec(name)));
            continue;
        }
        let path = match long_name.take() {
            Some(name) => name,
            None => entry.path()?.into_owned(),
        };
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        if kind != EntryType::Regular || !is_inside {
            let name = path.display();
            return Err(ArchiveError::Damaged(format!("{name} is not a file in the directory of the run")));
        }
        files += 1;
        if size > MAX_FILE || files > MAX_FILES {
            return Err(ArchiveError::Damaged("it has too many or too large files".to_owned()));
        }
        let target = dir.join(&path);
        if let Some(parent) = target.parent() {
            create_private_dir(parent)?;
        }
        io::copy(&mut entry, &mut create_private(&target)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::digest::{SHA256, digest};
    use std::os::unix::fs::PermissionsExt;

    fn write(dir: &Path, file: &str, content: &[u8]) {
        let path = dir.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A run directory, with incompressible evidence.
    fn run_dir() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "finished.json", b"{}");
        write(dir.path(), "artifacts/events.jsonl", b"{}\n");
        let evidence: Vec<u8> = (0..4000_u32)
            .flat_map(|n| *digest(&SHA256, &n.to_le_bytes()).as_ref().first_chunk::<8>().unwrap())
            .collect();
        write(dir.path(), "artifacts/message/a/v1.32.13/pod.yaml", &evidence);
        dir
    }

    fn log(dir: &Path, id: &str) -> String {
        let mut log = b"a line of the run\n".to_vec();
        PackedRun::pack(dir).unwrap().write_lines(id, &mut log).unwrap();
        String::from_utf8(log).unwrap()
    }

    #[test]
    fn results_survive_a_log() {
        let (run, target) = (run_dir(), tempfile::tempdir().unwrap());
        // An earlier attempt in the same log, and forged lines in its format.
        let log = format!(
            "{}evictlab-results x QUJD\nevictlab-results end\n{}",
            log(run.path(), "first"),
            log(run.path(), "second")
        );
        assert!(unpack(&log, target.path()).unwrap());
        for file in ["finished.json", "artifacts/events.jsonl", "artifacts/message/a/v1.32.13/pod.yaml"] {
            let read = |dir: &Path| fs::read(dir.join(file)).unwrap();
            assert_eq!(read(target.path()), read(run.path()), "{file}");
            let mode = target.path().join(file).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
        assert!(!unpack("a line\nanother\n", target.path()).unwrap());
    }

    #[test]
    fn a_rotated_or_damaged_log_is_an_error() {
        let (run, target) = (run_dir(), tempfile::tempdir().unwrap());
        let log = log(run.path(), "id");
        let rotated: String = log.lines().skip(3).map(|line| format!("{line}\n")).collect();
        let error = unpack(&rotated, target.path()).unwrap_err().to_string();
        assert!(error.contains("lines are there: the kubelet rotated the log"), "{error}");
        let first = log.lines().nth(1).unwrap();
        let swapped = log.replacen(first, &first.replacen('A', "B", 1), 1);
        let error = unpack(&swapped, target.path()).unwrap_err().to_string();
        assert!(error.contains("the checksum differs"), "{error}");
        assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
    }

    #[test]
    fn large_results_lose_their_evidence_only() {
        let (run, target) = (run_dir(), tempfile::tempdir().unwrap());
        assert!(!PackedRun::pack(run.path()).unwrap().without_evidence);
        let packed = PackedRun::pack_within(run.path(), 10_000).unwrap();
        assert!(packed.without_evidence && packed.compressed.len() < 1000);
        let mut log = Vec::new();
        packed.write_lines("id", &mut log).unwrap();
        assert!(unpack(&String::from_utf8(log).unwrap(), target.path()).unwrap());
        assert!(
            target.path().join("artifacts/events.jsonl").exists()
                && !target.path().join("artifacts/message").exists()
        );
    }

    #[test]
    fn files_outside_of_the_directory_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        let mut header = Header::new_gnu();
        header.set_size(1);
        header.set_entry_type(EntryType::Regular);
        header.as_gnu_mut().unwrap().name[..4].copy_from_slice(b"../x");
        header.set_cksum();
        let mut builder = Builder::new(Vec::new());
        builder.append(&header, &b"x"[..]).unwrap();
        let error = extract(&builder.into_inner().unwrap()[..], &target).unwrap_err().to_string();
        assert!(error.contains("../x is not a file in the directory of the run"), "{error}");
        assert!(!dir.path().join("x").exists());
    }

    #[test]
    fn long_names_are_kept_and_limited() {
        let (run, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let long = format!("artifacts/{}/{}", "a".repeat(100), "b".repeat(200));
        write(run.path(), &long, b"x");
        assert!(unpack(&log(run.path(), "id"), target.path()).unwrap());
        assert_eq!(fs::read(target.path().join(&long)).unwrap(), b"x");
    }

    #[test]
    fn archives_are_limited() {
        let header = |kind, size| {
            let mut header = Header::new_gnu();
            header.set_path("a").unwrap();
            header.set_size(size);
            header.set_entry_type(kind);
            header.set_cksum();
            header
        };
        // A name of one gigabyte, of which nothing is read.
        let name = header(EntryType::GNULongName, GIB).as_bytes().to_vec();
        let file = header(EntryType::Regular, MAX_FILE + 1).as_bytes().to_vec();
        for (archive, problem) in [(name, "a is not a file"), (file, "too large files")] {
            let target = tempfile::tempdir().unwrap();
            let error = extract(&archive[..], target.path()).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
            assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
        }
    }
}
