//! Programs of the image that are part of the evictlab binary.

use super::built::Built;

/// Programs by CPU architecture, sorted: those that the build of evictlab named.
const PROGRAMS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/stress_programs.rs"));

/// Returns the embedded program for a CPU architecture in image notation. Releases embed `amd64`
/// and `arm64`; a build from the source tree does not embed a program.
pub fn embedded(architecture: &str) -> Option<Built> {
    let (_, program) = PROGRAMS.iter().find(|(known, _)| *known == architecture)?;
    Some(Built { program: program.to_vec(), architecture: architecture.to_owned() })
}

/// Returns the CPU architectures of the embedded programs.
pub fn embedded_architectures() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|(architecture, _)| *architecture)
}
