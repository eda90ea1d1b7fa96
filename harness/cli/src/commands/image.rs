//! `evictlab image`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use evictlab_cluster::Docker;
use evictlab_cluster::images::Archive;
use evictlab_cluster::images::stress_image::{self, BuildError, CargoOutput, StressProgram};
use evictlab_runner::Interrupt;

use super::image_update;
use crate::failure::Failure;
use crate::output::print;

/// Build or load the stress image of evictlab, or update the list of node images
///
/// A run builds the stress image and loads it into the nodes if a case uses `image: stress:1`. A
/// released evictlab contains the program of the image; one that was built from the source tree
/// builds the program with cargo.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the stress image into an archive
    ///
    /// `evictlab image load`, `docker load` and `kind load image-archive` read the archive.
    #[command(after_help = "Examples:
  evictlab image build --output stress.tar
  evictlab image build --architecture arm64
  evictlab image build --target x86_64-unknown-linux-musl")]
    Build {
        /// Archive to write
        #[arg(long, value_name = "FILE", default_value = "stress.tar")]
        output: PathBuf,
        /// CPU architecture of the nodes, such as amd64 or arm64 [default: that of this machine]
        #[arg(long, value_name = "ARCHITECTURE", conflicts_with = "target")]
        architecture: Option<String>,
        /// Build the program from the source tree for a Rust target, such as
        /// x86_64-unknown-linux-musl for a smaller one [default: use the embedded program, else the
        /// target of this machine]
        #[arg(long, value_name = "TARGET")]
        target: Option<String>,
    },
    /// Load the stress image into Docker, for runs that cannot build it
    #[command(after_help = "Examples:
  evictlab image load stress.tar")]
    Load {
        /// Archive from `evictlab image build` [default: build the image now]
        #[arg(value_name = "FILE")]
        archive: Option<PathBuf>,
    },
    Update(image_update::Args),
}

/// Executes the subcommand.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    let done = interrupt.or_none(async {
        match &args.command {
            Command::Build { output, architecture, target } => {
                build(output, architecture.as_deref(), target.as_deref()).await
            }
            Command::Load { archive } => load(archive.as_deref()).await,
            Command::Update(args) => image_update::run(args).await,
        }
    });
    done.await.unwrap_or_else(|| Err(Failure::interrupted()))
}

async fn build(output: &Path, architecture: Option<&str>, target: Option<&str>) -> Result<ExitCode, Failure> {
    let built = match (architecture, target) {
        (None, Some(target)) => build_program(Some(target)).await?,
        (architecture, _) => provide_program(architecture).await?,
    };
    let (program, archive) = (built.program.len(), archive_of(&built)?);
    std::fs::write(output, &archive.bytes)
        .map_err(|error| Failure::bad_input(format!("failed to write {}: {error}", output.display())))?;
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
    let docker = Docker::connect().await.map_err(Failure::infrastructure)?;
    match archive {
        Some(archive) => stress_image::load(&docker, archive).await.map_err(Failure::bad_input)?,
        None => {
            let architecture = docker.architecture().await.map_err(Failure::infrastructure)?;
            let built = archive_of(&provide_program(Some(&architecture)).await?)?;
            let file = tempfile::NamedTempFile::new().map_err(Failure::infrastructure)?;
            std::fs::write(file.path(), &built.bytes).map_err(Failure::infrastructure)?;
            stress_image::load(&docker, file.path()).await.map_err(Failure::infrastructure)?;
        }
    }
    print(format!("Docker has {}", stress_image::NAME))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the embedded program for an architecture, by default that of this machine, else builds
/// the program from the source tree.
async fn provide_program(architecture: Option<&str>) -> Result<StressProgram, Failure> {
    let host = stress_image::architecture(std::env::consts::ARCH);
    let architecture = architecture.unwrap_or(host);
    match StressProgram::built_in(architecture) {
        Some(built) => Ok(built),
        None if architecture == host => build_program(None).await,
        None => Err(Failure::bad_input(BuildError::NoProgram {
            architecture: architecture.to_owned(),
            known: StressProgram::built_in_architectures().collect(),
        })),
    }
}

/// Builds the program from the source tree, by default for this machine.
async fn build_program(target: Option<&str>) -> Result<StressProgram, Failure> {
    let tree = stress_image::source_tree().ok_or(BuildError::NoSource).map_err(Failure::bad_input)?;
    stress_image::build(&tree, target, CargoOutput::Inherited).await.map_err(Failure::infrastructure)
}

fn archive_of(built: &StressProgram) -> Result<Archive, Failure> {
    built.archive().map_err(Failure::infrastructure)
}
