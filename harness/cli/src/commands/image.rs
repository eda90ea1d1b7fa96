//! `evictlab image`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use evictlab_runner::cluster::Docker;
use evictlab_runner::images::own::{self, Archive, BuildError, Words};
use evictlab_runner::schedule::Interrupt;

use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::print;

/// Build our own stress image, or bring it to where it cannot be built
///
/// A run builds it by itself, and puts it into the nodes, where a case says `image: stress:1`. No registry has it.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build it from the source tree into an archive, for `evictlab image load`, `docker load` or `kind load image-archive`
    Build {
        /// Where the archive goes
        #[arg(long, value_name = "FILE", default_value = "stress.tar")]
        output: PathBuf,
        /// The Rust target to build it for, such as x86_64-unknown-linux-musl, which makes it smaller [default: this machine's]
        #[arg(long, value_name = "TARGET")]
        target: Option<String>,
    },
    /// Load it into Docker, where runs find it if they cannot build it
    Load {
        /// An archive that `evictlab image build` made; none: it is built now
        #[arg(value_name = "FILE")]
        archive: Option<PathBuf>,
    },
}

/// Does what the subcommand says.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::listen().map_err(infrastructure)?;
    let done = interrupt.or_none(async {
        match &args.command {
            Command::Build { output, target } => build(output, target.as_deref()).await,
            Command::Load { archive } => load(archive.as_deref()).await,
        }
    });
    done.await.unwrap_or_else(|| Err(Failure::interrupted()))
}

async fn build(output: &Path, target: Option<&str>) -> Result<ExitCode, Failure> {
    let (program, archive) = built(target).await?;
    std::fs::write(output, &archive.bytes)
        .map_err(|error| bad_input(format!("{} cannot be written: {error}", output.display())))?;
    let size = program.div_ceil(1024);
    print(format!(
        "{}: {} for linux/{}, a program of {size} KiB",
        output.display(),
        own::NAME,
        archive.architecture
    ))?;
    print(format!("where it is needed: evictlab image load {}", output.display()))?;
    Ok(ExitCode::SUCCESS)
}

async fn load(archive: Option<&Path>) -> Result<ExitCode, Failure> {
    let docker = Docker::connect().await.map_err(infrastructure)?;
    match archive {
        Some(archive) => own::load(&docker, archive).await.map_err(bad_input)?,
        None => {
            let (_, archive) = built(None).await?;
            let file = tempfile::NamedTempFile::new().map_err(infrastructure)?;
            std::fs::write(file.path(), &archive.bytes).map_err(infrastructure)?;
            own::load(&docker, file.path()).await.map_err(infrastructure)?;
        }
    }
    print(format!("Docker has {}", own::NAME))?;
    Ok(ExitCode::SUCCESS)
}

/// The image, and how large its program is, in bytes.
async fn built(target: Option<&str>) -> Result<(usize, Archive), Failure> {
    let tree = own::source().ok_or(BuildError::NoSource).map_err(bad_input)?;
    let built = own::build(&tree, target, Words::Shown).await.map_err(infrastructure)?;
    let archive = built.archive().map_err(infrastructure)?;
    Ok((built.program.len(), archive))
}
