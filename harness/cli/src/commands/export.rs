//! `evictlab export`

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use evictlab_runner::case::LoadedCase;
use evictlab_runner::cluster::Docker;
use evictlab_runner::export::{Machine, recipe};
use evictlab_runner::select::{Selection, select};
use evictlab_runner::words::quoted;

use super::kubelets::KubeletArgs;
use super::selection::SourceArgs;
use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::{print, tell};

/// Write a case as a folder that repeats it with kind and kubectl alone
///
/// For an issue upstream: whoever gets the folder needs Docker, kind and kubectl, and no evictlab. In it are a kind configuration with a worker for each
/// kubelet, the manifests with the numbers filled in, and a short script that makes the cluster, sets the threshold from what each worker has, waits for the
/// evictions, shows what the kubelets say of them, and deletes the cluster.
///
/// Nothing is pulled or run here. A case that asks for what neither kind nor kubectl does, such as a fault or a step that waits for an expression, is refused
/// with the line that asks for it.
///
/// Exit status: 0 written; 2 the case, the kubelets or the folder will not do, and why.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab export sidecars-are-named --kubelet v1.31.14 --kubelet v1.32.13
  evictlab export limits/hard-grace --kubelet v1.30 --output-dir /tmp/hard-grace
  evictlab export my-suite/my-case.yaml --kubelet ./kubelet")]
pub struct Args {
    /// The case: its name, `suite/case`, or its file
    #[arg(value_name = "CASE")]
    case: String,
    #[command(flatten)]
    kubelets: KubeletArgs,
    /// Where the files go: a new or empty folder [default: the case's name, here]
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
}

/// Writes the folder.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let case = one(args)?;
    let name = case.case.name.as_str();
    let dir = args.output_dir.clone().unwrap_or_else(|| Path::new(".").join(name));
    check_free(&dir)?;
    let lock = args.kubelets.lock()?;
    let docker = Docker::connect().await;
    let machine = match &docker {
        Ok(docker) => Machine::of_docker(docker).await.map_err(infrastructure)?,
        Err(error) => {
            tell(format_args!(
                "without Docker: the numbers are for this machine, and images are as listed\n({error})"
            ));
            Machine::here()
        }
    };
    let kubelets = args.kubelets.planned(docker.as_ref().ok(), &lock).await?;
    let recipe = recipe(&case, &kubelets, &machine, &|image| lock.case_image(image)).map_err(bad_input)?;
    recipe.write(&dir).map_err(bad_input)?;
    let labels: Vec<&str> = kubelets.iter().map(|kubelet| kubelet.label.as_str()).collect();
    let script = quoted(&[dir.join("run.sh").display().to_string()]);
    print(format!(
        "{}: {} on {}, for whoever has Docker, kind and kubectl",
        dir.display(),
        case.id(),
        labels.join(", ")
    ))?;
    print(format!("run it:                 {script}"))?;
    print(format!("run it, keep its nodes: KEEP=1 {script}"))?;
    Ok(ExitCode::SUCCESS)
}

/// The one case that was named.
fn one(args: &Args) -> Result<Arc<LoadedCase>, Failure> {
    let selection = Selection { names: vec![args.case.clone()], ..Selection::default() };
    let cases = select(&args.source.source(), &selection)?;
    match cases.as_slice() {
        [case] => Ok(case.clone()),
        several => {
            let ids: Vec<String> = several.iter().map(|case| format!("  {}", case.id())).collect();
            Err(bad_input(format!(
                "`{}` is {} cases, and a folder repeats one; name one of\n{}",
                args.case,
                several.len(),
                ids.join("\n")
            )))
        }
    }
}

/// Nothing that is there is written over.
fn check_free(dir: &Path) -> Result<(), Failure> {
    let problem = match fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Ok(true) => return Ok(()),
        Ok(false) => "is not empty".to_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => format!("cannot be written to: {error}"),
    };
    Err(bad_input(format!("{} {problem}\nName a new or empty folder: --output-dir DIR", dir.display())))
}
