//! Errors of building and loading the stress image.

use super::program::NAME;
use crate::docker::DockerError;

/// The image could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Neither the program nor the source tree exists.
    #[error(
        "failed to build image {NAME}: this evictlab does not contain its program, and the source tree does not exist here\nhelp: use a released evictlab, which contains it; or run `evictlab image build --output stress.tar` with one, then here `evictlab image load stress.tar`"
    )]
    NoSource,
    /// Cargo is not installed.
    #[error(
        "failed to build image {NAME}: this evictlab does not contain its program, and `cargo` is not on the PATH\nhelp: use a released evictlab, which contains it, or install Rust (https://rustup.rs)"
    )]
    NoCargo,
    /// The program for this architecture is not built in.
    #[error(
        "failed to build image {NAME} for {architecture}: this evictlab contains {}\nhelp: name an installed Rust target instead: --target TARGET",
        list(known)
    )]
    NoProgram {
        /// CPU architecture in image notation.
        architecture: String,
        /// Architectures of the built-in programs.
        known: Vec<&'static str>,
    },
    /// The host is not Linux, which the program needs.
    #[error(
        "failed to build image {NAME}: it is a Linux program, and this machine is {host}\nhelp: on a Linux machine with the CPU of the Docker host run `evictlab image build --output stress.tar`, then here `evictlab image load stress.tar`; or name an installed target that has a linker: `evictlab image build --target TARGET`"
    )]
    NotLinux {
        /// Target triple of the host.
        host: String,
    },
    /// Cargo failed.
    #[error("failed to build image {NAME}: `{command}` failed:\n{output}{}", help(output))]
    Failed {
        /// Command line.
        command: String,
        /// Last lines of the output.
        output: String,
    },
    /// Cargo could not be started, or its result could not be read.
    #[error("failed to build image {NAME}: failed to {operation}: {source}")]
    Io {
        /// Verb phrase of the failed operation.
        operation: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

/// Names the architectures of the built-in programs.
fn list(known: &[&str]) -> String {
    match known {
        [] => "no program of the image".to_owned(),
        known => format!("its program for {}", known.join(" and ")),
    }
}

/// Advice for linker errors about a missing static C library.
fn help(output: &str) -> &'static str {
    if output.contains("-lc") || output.contains("crt1.o") {
        "\nhelp: install a static C library (Debian: libc6-dev, Fedora: glibc-static), or name another target: `evictlab image build --target TARGET`"
    } else {
        ""
    }
}

/// The image could not be loaded into Docker.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// The archive could not be read.
    #[error("failed to read archive {path}: {source}")]
    Read {
        /// Path of the archive.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The archive does not contain the image.
    #[error(
        "failed to load {path}: it does not contain the image {NAME}\nhelp: create the archive with `evictlab image build`"
    )]
    WrongImage {
        /// Path of the archive.
        path: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_c_library_names_its_package() {
        let failed =
            |output: &str| BuildError::Failed { command: "cargo".to_owned(), output: output.to_owned() };
        assert!(failed("ld: cannot find -lc: No such file").to_string().contains("Fedora: glibc-static"));
        assert!(!failed("error[E0425]").to_string().contains("glibc"));
    }
}
