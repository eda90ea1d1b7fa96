//! `evictlab image update`

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::images::update::{ImageChangeKind, RELEASES, Update, download, node_images, update};

use crate::failure::Failure;
use crate::output::print;

/// Add the node images that kind published to an image catalog
///
/// Reads the release notes of kind, adds new Kubernetes versions with their digests, and replaces
/// the images that a newer kind release built again. Use the catalog with `--image-lock FILE`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab image update --image-lock images.lock
  evictlab image update --dry-run
  gh api --paginate repos/kubernetes-sigs/kind/releases | evictlab image update --from -")]
pub(crate) struct Args {
    /// Catalog to update; a missing file is created from the built-in catalog
    #[arg(long, value_name = "FILE", default_value = "images/images.lock")]
    image_lock: PathBuf,
    /// Releases of kind as JSON: an address, a file, or `-` for standard input
    #[arg(long, value_name = "SOURCE", default_value = RELEASES)]
    from: String,
    /// Print the changes without writing the catalog
    #[arg(long)]
    dry_run: bool,
}

/// Executes the subcommand.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let path = args.image_lock.display();
    let catalog = match std::fs::read_to_string(&args.image_lock) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => ImageCatalog::BUILT_IN.to_owned(),
        Err(error) => {
            return Err(Failure::bad_input(format!("failed to read image catalog {path}: {error}")));
        }
    };
    let published = node_images(&releases(&args.from).await?).map_err(Failure::bad_input)?;
    let updated = update(&catalog, &published).map_err(Failure::bad_input)?;
    if !args.dry_run {
        std::fs::write(&args.image_lock, &updated.text).map_err(|error| {
            Failure::bad_input(format!(
                "failed to write image catalog {path}: {error}\nhelp: name another file: --image-lock FILE"
            ))
        })?;
    }
    report(&updated, &format!("{path}{}", if args.dry_run { ", not written" } else { "" }))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the list of releases.
async fn releases(source: &str) -> Result<String, Failure> {
    if source.starts_with("https://") || source.starts_with("http://") {
        return download(source).await.map_err(Failure::infrastructure);
    }
    let read = match source {
        "-" => {
            let mut text = String::new();
            io::stdin().lock().read_to_string(&mut text).map(|_| text)
        }
        path => std::fs::read_to_string(path),
    };
    read.map_err(|error| {
        Failure::bad_input(format!("failed to read the releases of kind from {source}: {error}"))
    })
}

fn report(updated: &Update, catalog: &str) -> Result<(), Failure> {
    for change in &updated.changes {
        let verb = match change.change {
            ImageChangeKind::Added => "added",
            ImageChangeKind::Rebuilt => "rebuilt",
        };
        print(format!("{verb:<8} {:<12} kind {}", change.version.to_string(), change.kind))?;
    }
    print(format!("{catalog}: {} changed, {} unchanged", updated.changes.len(), updated.unchanged))
}
