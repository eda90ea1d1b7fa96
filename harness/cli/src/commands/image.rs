//! `evictlab image`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use evictlab_cluster::Docker;
use evictlab_cluster::images::stress_image::{self, Archive, BuildError, CargoOutput};
use evictlab_runner::Interrupt;

use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::print;

/// Build or load the stress image of evictlab
///
/// A run builds the image and loads it into the nodes if a case uses `image: stress:1`. These
/// commands are for machines that cannot build it. No registry has the image.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the image from the source tree into an archive
    ///
    /// `evictlab image load`, `docker load` and `kind load image-archive` read the archive.
    #[command(after_help = "Examples:
  evictlab image build --output stress.tar
  evictlab image build --target x86_64-unknown-linux-musl")]
    Build {
        /// Archive to write
        #[arg(long, value_name = "FILE", default_value = "stress.tar")]
        output: PathBuf,
        /// Rust target of the program, such as x86_64-unknown-linux-musl for a smaller one
        /// [default: the target of this machine]
        #[arg(long, value_name = "TARGET")]
        target: Option<String>,
    },
    /// Load the image into Docker, for runs that cannot build it
    #[command(after_help = "Examples:
  evictlab image load stress.tar")]
    Load {
        /// Archive from `evictlab image build` [default: build the image now]
        #[arg(value_name = "FILE")]
        archive: Option<PathBuf>,
    },
}

/// Executes the subcommand.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
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
    let (program, archive) = build_archive(target).await?;
    std::fs::write(output, &archive.bytes)
        .map_err(|error| bad_input(format!("failed to write {}: {error}", output.display())))?;
    let size = program.div_ceil(1024);
    print(format!(
        "{}: {} for linux/{}, program size {size} KiB",
        output.display(),
        stress_image::NAME,
        archive.architecture
    ))?;
    print(format!("load it with: evictlab image load {}", output.display()))?;
    Ok(ExitCode::SUCCESS)
}

async fn load(archive: Option<&Path>) -> Result<ExitCode, Failure> {
    let docker = Docker::connect().await.map_err(infrastructure)?;
    match archive {
        Some(archive) => stress_image::load(&docker, archive).await.map_err(bad_input)?,
        None => {
            let (_, archive) = build_archive(None).await?;
            let file = tempfile::NamedTempFile::new().map_err(infrastructure)?;
            std::fs::write(file.path(), &archive.bytes).map_err(infrastructure)?;
            stress_image::load(&docker, file.path()).await.map_err(infrastructure)?;
        }
    }
    print(format!("Docker has {}", stress_image::NAME))?;
    Ok(ExitCode::SUCCESS)
}

/// Builds the image; returns the size of its program in bytes, and the image.
async fn build_archive(target: Option<&str>) -> Result<(usize, Archive), Failure> {
    let tree = stress_image::source_tree().ok_or(BuildError::NoSource).map_err(bad_input)?;
    let built = stress_image::build(&tree, target, CargoOutput::Inherited).await.map_err(infrastructure)?;
    let archive = built.archive().map_err(infrastructure)?;
    Ok((built.program.len(), archive))
}
