//! `evictlab export`

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap_complete::engine::ArgValueCandidates;
use evictlab_case::LoadedCase;
use evictlab_case::select::{Selection, select};
use evictlab_cluster::Docker;
use evictlab_report::text::shell_quote;
use evictlab_tools::export::{HostInfo, recipe};

use crate::args::candidates;
use crate::args::kubelets::KubeletArgs;
use crate::args::selection::SourceArgs;
use crate::failure::{Failure, write_help};
use crate::messages::print_stderr;
use crate::output::print;

/// Write a case as a directory that reproduces it with only kind and kubectl
///
/// For an upstream issue: the recipient needs Docker, kind and kubectl, but not evictlab. The
/// directory contains a kind configuration with one worker per kubelet, the manifests with all
/// numbers filled in, and a short script that creates the cluster, computes the threshold for each
/// worker, waits for the evictions, shows what each kubelet reports, and deletes the cluster.
///
/// Pulls no images and runs no case. A case that needs more than kind and kubectl, such as a fault
/// or a step that waits for an expression, is rejected with the line that needs it.
///
/// Exit status: 0 written; 2 the case, the kubelets or the directory cannot be used, with the
/// reason; 4 error of Docker.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab export sidecars-are-named --kubelet v1.31.14 --kubelet v1.32.11
  evictlab export limits/hard-grace --kubelet v1.30 --output-dir /tmp/hard-grace
  evictlab export my-suite/my-case.yaml --kubelet ./kubelet")]
pub(crate) struct Args {
    /// Case: its name, `suite/case`, or its file
    #[arg(value_name = "CASE", add = ArgValueCandidates::new(candidates::case_names))]
    case: String,
    #[command(flatten)]
    kubelets: KubeletArgs,
    /// Output directory, new or empty [default: ./CASE]
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
}

/// Writes the directory.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let case = select_case(args)?;
    let name = case.case.name.as_str();
    let dir = args.output_dir.clone().unwrap_or_else(|| Path::new(".").join(name));
    require_empty(&dir)?;
    let catalog = args.kubelets.image_catalog()?;
    let docker = Docker::connect().await;
    let host = match &docker {
        Ok(docker) => HostInfo::of_docker(docker).await.map_err(Failure::infrastructure)?,
        Err(error) => {
            print_stderr(format_args!(
                "without Docker: using the memory of this machine and the image catalog\n({error})"
            ));
            HostInfo::local()
        }
    };
    let kubelets = args.kubelets.resolve_offline(docker.as_ref().ok(), &catalog).await?;
    let recipe =
        recipe(&case, &kubelets, &host, &|image| catalog.case_image(image)).map_err(Failure::bad_input)?;
    recipe.write(&dir).map_err(|error| {
        let help = write_help(error.source.kind(), "another directory with --output-dir");
        Failure::bad_input(format!("{error}\n{help}"))
    })?;
    let labels: Vec<&str> = kubelets.iter().map(|kubelet| kubelet.label.as_str()).collect();
    let script = shell_quote(&[dir.join("run.sh").display().to_string()]);
    print(format!(
        "{}: {} on {}; requires Docker, kind and kubectl",
        dir.display(),
        case.id(),
        labels.join(", ")
    ))?;
    print(format!("run:                  {script}"))?;
    print(format!("run, keep the cluster: KEEP=1 {script}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the only selected case.
fn select_case(args: &Args) -> Result<Arc<LoadedCase>, Failure> {
    let selection = Selection { names: vec![args.case.clone()], ..Selection::default() };
    let cases = select(&args.source.source(), &selection)?;
    match cases.as_slice() {
        [case] => Ok(case.clone()),
        several => {
            let ids: Vec<String> = several.iter().map(|case| format!("  {}", case.id())).collect();
            Err(Failure::bad_input(format!(
                "failed to select a case: `{}` selects {} cases, and an export has one\nhelp: name one of\n{}",
                args.case,
                several.len(),
                ids.join("\n")
            )))
        }
    }
}

/// Requires a new or empty directory, so that no file is overwritten.
fn require_empty(dir: &Path) -> Result<(), Failure> {
    let problem = match fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Ok(true) => return Ok(()),
        Ok(false) => "is not empty".to_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => format!("is not accessible: {error}"),
    };
    Err(Failure::bad_input(format!(
        "failed to create output directory {}: it {problem}\nhelp: choose a new or empty directory with --output-dir",
        dir.display()
    )))
}
