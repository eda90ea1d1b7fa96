//! `evictlab bisect`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use evictlab_rules::KubeletVersion;
use evictlab_runner::bisect::{Answer, Answers, Candidate, Course, Outcome, Search, ordered, tell};
use evictlab_runner::case::LoadedCase;
use evictlab_runner::clock::Clock;
use evictlab_runner::cluster::{self, Keep, Kubelet, KubeletSource, KubeletSpec};
use evictlab_runner::images::{Lock, Resolve};
use evictlab_runner::report::{Manners, RunDir, Wanted, exit_code};
use evictlab_runner::schedule::{Interrupt, Repeat, Request, new_id};
use evictlab_runner::select::{Selection, select};
use evictlab_runner::words::quoted;

use super::asked::AskedKubelet;
use super::backend::Backend;
use super::conduct::conduct;
use super::embedded::EmbeddedArgs;
use super::kind::Kind;
use super::kubelets::ImageArgs;
use super::new_cluster::NewClusterArgs;
use super::selection::SourceArgs;
use super::target::only_made;
use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::{print, tell as say};

/// How often a kubelet is tried whose verdict tells nothing.
const TRIES: u32 = 3;

/// Find the first kubelet whose verdict on a case differs
///
/// Between a kubelet on which the case is good (passed, fixed) and one on which it is bad (failed, reproduced), whichever is older. Tries the kubelets
/// between them, up to five at once, in as few clusters as the version skew allows: an API server takes kubelets up to three minors older. A
/// kubelet whose verdict tells nothing is tried three times, then passed over, and it is said so.
///
/// Exit status: 0 found; 1 an end is not what it was said to be; 2 the input cannot be used; 3 kubelets that told nothing lie in between;
/// 4 the harness, a cluster or the host went wrong; 130 interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab bisect sidecars-are-named --bad v1.31.14 --good v1.36.2
  evictlab bisect sidecars-are-named --good v1.36.2 --bad v1.31.14 --kubelets v1.31.14,v1.32.13,v1.36.2
  evictlab bisect ./mine.yaml --good ./kubelet-1 --bad ./kubelet-9 --kubelets ./kubelet-1,./kubelet-4,./kubelet-9")]
pub struct Args {
    /// The case: its name, `suite/case`, or its file
    #[arg(value_name = "CASE")]
    case: String,
    /// A kubelet on which it is good: a version, a node image, or a binary
    #[arg(long, value_name = "KUBELET")]
    good: AskedKubelet,
    /// A kubelet on which it is bad
    #[arg(long, value_name = "KUBELET")]
    bad: AskedKubelet,
    /// The kubelets to look among; those of one version, such as binaries, the oldest first [default: the versions of images/images.lock]
    #[arg(long, value_name = "KUBELETS", value_delimiter = ',')]
    kubelets: Vec<AskedKubelet>,
    #[command(flatten)]
    images: ImageArgs,
    #[command(flatten)]
    source: SourceArgs,
    /// Where the nodes come from
    #[arg(long, value_enum, default_value_t = Backend::Kind)]
    pub backend: Backend,
    /// Leave the runs' files here [default: results/TIME]
    #[arg(long, value_name = "DIR", env = "ARTIFACTS_DIR")]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    embedded: EmbeddedArgs,
    #[command(flatten)]
    new_cluster: NewClusterArgs,
}

/// A kubelet with its version, as a candidate; a release is called by that.
fn candidate(asked: &AskedKubelet, version: KubeletVersion) -> Candidate {
    let is_release = matches!(asked.spec.source, KubeletSource::Release(_) | KubeletSource::Minor(_));
    let name = if is_release { version.to_string() } else { asked.text.clone() };
    Candidate { name, spec: asked.spec.clone(), version }
}

impl Args {
    fn case(&self) -> Result<Arc<LoadedCase>, Failure> {
        let selection = Selection { names: vec![self.case.clone()], ..Selection::default() };
        let mut cases = select(&self.source.source(), &selection)?;
        match (cases.pop(), cases.len()) {
            (Some(case), 0) => Ok(case),
            (_, more) => Err(bad_input(format!(
                "{} is {} cases, and a search needs one: `evictlab list {0}` has their names",
                self.case,
                more + 1
            ))),
        }
    }

    /// The kubelets to look among, from old to new.
    async fn course(&self, means: &Means) -> Result<Course, Failure> {
        let good = means.candidate(&self.good).await?;
        let bad = means.candidate(&self.bad).await?;
        let list = match self.kubelets.is_empty() {
            true => means.all(),
            false => self.kubelets.clone(),
        };
        let mut between = Vec::new();
        for asked in &list {
            between.push(means.candidate(asked).await?);
        }
        ordered(good, bad, between).map_err(bad_input)
    }
}

/// What the nodes are made of.
struct Means {
    lock: Lock,
    images: BTreeMap<KubeletVersion, String>,
    /// None for a model.
    kind: Option<Kind>,
}

impl Means {
    async fn of(args: &Args) -> Result<Self, Failure> {
        let kind = match args.backend {
            Backend::Embedded => None,
            _ => Some(Kind::at_hand().await?),
        };
        Ok(Self { lock: args.images.lock()?, images: args.images.overrides(), kind })
    }

    /// Every kubelet there is: the versions that are listed, or of a model one of each minor.
    fn all(&self) -> Vec<AskedKubelet> {
        let release = |version| KubeletSpec { claimed: None, source: KubeletSource::Release(version) };
        let specs = match &self.kind {
            Some(_) => self.lock.nodes.keys().cloned().map(release).collect(),
            None => cluster::every_minor(),
        };
        specs.into_iter().map(|spec| AskedKubelet { text: String::new(), spec }).collect()
    }

    async fn candidate(&self, asked: &AskedKubelet) -> Result<Candidate, Failure> {
        let version = match &self.kind {
            Some(kind) => {
                let resolve = Resolve {
                    docker: &kind.docker,
                    lock: &self.lock,
                    overrides: &self.images,
                    progress: &|text| say(text),
                };
                resolve.version(&asked.spec).await.map_err(bad_input)?
            }
            None => {
                let modelled = cluster::modelled(std::slice::from_ref(&asked.spec), &self.lock);
                modelled.map_err(bad_input)?.remove(0).version
            }
        };
        Ok(candidate(asked, version))
    }

    /// The kubelets of these candidates, none for one that cannot be had, with the reason.
    async fn kubelets(&self, args: &Args, candidates: &[Candidate]) -> Vec<Result<Kubelet, String>> {
        let mut all: Vec<Result<Kubelet, String>> = Vec::new();
        for candidate in candidates {
            let spec = std::slice::from_ref(&candidate.spec);
            let resolved = match &self.kind {
                Some(kind) => args.images.resolve(&kind.docker, &self.lock, spec).await,
                None => args.images.modelled(spec, &self.lock),
            };
            let kubelet = resolved.map(|mut kubelets| kubelets.remove(0)).map_err(|failure| failure.text);
            all.push(kubelet);
        }
        let labels = Kubelet::told_apart(all.iter().flatten().cloned().collect());
        let mut labelled = labels.into_iter();
        all.into_iter().map(|one| one.map(|kubelet| labelled.next().unwrap_or(kubelet))).collect()
    }

    async fn backend(
        &self,
        args: &Args,
        run: &str,
        kubelets: Vec<Kubelet>,
        clock: &Clock,
    ) -> Result<Box<dyn cluster::Backend>, Failure> {
        let Some(kind) = &self.kind else {
            let words =
                ["evictlab", "bisect", &args.case, "--good", &args.good.text, "--bad", &args.bad.text];
            let again = quoted(&words.map(str::to_owned));
            return Ok(Box::new(args.embedded.backend(kubelets, 1, again, clock)?));
        };
        let clusters = args.new_cluster.clusters(run, 1)?;
        Ok(Box::new(kind.backend(run, kubelets, clusters, Keep::Never).await?))
    }
}

/// Searches. Where the runs have a model's time, the runtime's clock must be paused.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
    // Before anything is made.
    let interrupt = Interrupt::listen().map_err(infrastructure)?;
    let prepared = async {
        only_made(args.backend, &args.embedded, &args.new_cluster, &args.images)?;
        let case = args.case()?;
        let means = Means::of(args).await?;
        let course = args.course(&means).await?;
        Ok::<_, Failure>((case, means, course))
    };
    let Some(prepared) = interrupt.or_none(prepared).await else { return Err(Failure::interrupted()) };
    let (case, means, course) = prepared?;
    let root = RunDir::wanted(args.output_dir.as_deref()).map_err(bad_input)?;
    let mut search = Search::new(course);
    let outcome = search
        .run(async |nth, candidates: &[Candidate]| {
            one_cluster(args, &case, &means, (nth, candidates), &root, &interrupt).await
        })
        .await?;
    let text = tell(&search, &outcome, &case.id());
    root.write("bisect.md", &text).map_err(infrastructure)?;
    print(format!("\n{text}\nTo be pasted: {}", root.path().join("bisect.md").display()))?;
    Ok(match outcome {
        Outcome::Found { last, first } if last + 1 == first => exit_code::SUCCESS,
        Outcome::NotAsSaid(_) => exit_code::FAILED,
        Outcome::Found { .. } | Outcome::Untold(_) => exit_code::INCONCLUSIVE,
    }
    .into())
}

/// Runs the case on candidates that share a cluster.
async fn one_cluster(
    args: &Args,
    case: &Arc<LoadedCase>,
    means: &Means,
    (nth, candidates): (usize, &[Candidate]),
    root: &RunDir,
    interrupt: &Interrupt,
) -> Result<Vec<Answer>, Failure> {
    let clock = args.backend.clock();
    let run = new_id();
    let prepared = async {
        let kubelets = means.kubelets(args, candidates).await;
        let backend = match kubelets.iter().flatten().cloned().collect::<Vec<_>>() {
            there if there.is_empty() => None,
            there => Some(means.backend(args, &run, there, &clock).await?),
        };
        Ok::<_, Failure>((kubelets, backend))
    };
    let Some(prepared) = interrupt.or_none(prepared).await else { return Err(Failure::interrupted()) };
    let (kubelets, backend) = prepared?;
    let answers = Answers::default();
    if let Some(backend) = backend {
        let names: Vec<&str> = kubelets.iter().flatten().map(|kubelet| kubelet.label.as_str()).collect();
        print(format!("cluster {nth}: {}", names.join(", ")))?;
        let request = Request {
            run,
            cases: vec![case.clone()],
            backend,
            repeat: Repeat::UntilTold(TRIES),
            timeout: None,
            lock: Arc::new(means.lock.clone()),
            baseline: None,
        };
        let run_dir = RunDir::at(&root.artifacts().join(format!("cluster-{nth}"))).map_err(bad_input)?;
        let wanted = Wanted {
            run_dir,
            stdout: Some(Manners::of_stdout()),
            stress: false,
            record: None,
            write_baseline: None,
        };
        conduct(request, wanted, vec![answers.report()], clock, interrupt.clone()).await?;
    }
    if interrupt.stop.is_cancelled() {
        return Err(Failure::interrupted());
    }
    Ok(kubelets
        .into_iter()
        .map(|kubelet| match kubelet {
            Ok(kubelet) => answers.of(&kubelet.label),
            Err(why) => Answer::NotHad(why),
        })
        .collect())
}
