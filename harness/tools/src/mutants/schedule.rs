//! Order in which cases run on mutants, on all cores.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use evictlab_case::LoadedCase;
use evictlab_cluster::Kubelet;
use evictlab_cluster::images::ImageCatalog;
use evictlab_embedded::{CgroupVersion, Defect};

use super::execute::{MutantError, Subject, cgroup_of};
use super::matrix::{CaseRow, LeftOut, Matrix, MutantCaseOutcome, MutantRow};

/// Mutants and cases to run.
#[derive(Clone, Debug)]
pub struct MatrixOptions {
    /// Cases.
    pub cases: Vec<Arc<LoadedCase>>,
    /// Kubelets without defects.
    pub kubelets: Vec<Kubelet>,
    /// Defects to give each kubelet.
    pub defects: Vec<Defect>,
    /// Names of the images.
    pub catalog: Arc<ImageCatalog>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Run every case on every mutant, instead of ending with the first kill.
    pub full: bool,
}

/// Runs the cases on sound kubelets, then on the mutants. `progress` is called with the number of
/// finished and of all mutants.
///
/// # Errors
/// The run of a case could not be started.
pub fn run(options: &MatrixOptions, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Matrix, MutantError> {
    let sound = sound_cases(options)?;
    let mut matrix = Matrix { full: options.full, left_out: left_out(&sound), ..Matrix::default() };
    matrix.cases = options.cases.iter().map(|case| case_row(case, &sound)).collect();
    let mutants = mutants(options, &sound);
    let total = mutants.len();
    let finished = Mutex::new((0, Learned::default()));
    let rows = on_all_cores(mutants, |mutant: &Mutant<'_>| {
        let learned = lock(&finished).1.clone();
        let row = mutant.run(options, &learned)?;
        let mut finished = lock(&finished);
        finished.0 += 1;
        finished.1.learn(mutant.defect, &row);
        progress(finished.0, total);
        Ok::<_, MutantError>(row)
    });
    matrix.mutants = rows.into_iter().collect::<Result<_, _>>()?;
    matrix.count_kills();
    if !options.full {
        find_kills_of_idle_cases(options, &sound, &mut matrix)?;
    }
    Ok(matrix)
}

/// Results on the sound kubelets, by case and kubelet.
type Sound = Vec<(Arc<LoadedCase>, Kubelet, MutantCaseOutcome)>;

fn sound_cases(options: &MatrixOptions) -> Result<Sound, MutantError> {
    let pairs = options
        .kubelets
        .iter()
        .flat_map(|kubelet| options.cases.iter().map(move |case| (case.clone(), kubelet.clone())));
    let outcomes = on_all_cores(pairs.collect(), |(case, kubelet): &(Arc<LoadedCase>, Kubelet)| {
        let subject =
            Subject { kubelet: kubelet.clone(), cgroup: cgroup_of(case), defect: None, seed: options.seed };
        let outcome = subject.run(case, &options.catalog)?;
        Ok::<_, MutantError>((case.clone(), kubelet.clone(), outcome))
    });
    outcomes.into_iter().collect()
}

fn left_out(sound: &Sound) -> Vec<LeftOut> {
    let unsound = sound.iter().filter(|(_, _, outcome)| !outcome.is_sound());
    unsound
        .map(|(case, kubelet, outcome)| LeftOut {
            case: case.id(),
            kubelet: kubelet.label.clone(),
            outcome: outcome.clone(),
        })
        .collect()
}

fn case_row(case: &LoadedCase, sound: &Sound) -> CaseRow {
    let id = case.id();
    let ran = sound.iter().any(|(other, _, outcome)| other.id() == id && outcome.is_sound());
    CaseRow { no_mutant: case.case.no_mutant_reason.clone(), ran, kills: 0, case: id }
}

/// Mutant with the cases that pass on its kubelet without the defect.
struct Mutant<'a> {
    defect: Defect,
    kubelet: &'a Kubelet,
    cases: Vec<&'a Arc<LoadedCase>>,
}

fn mutants<'a>(options: &'a MatrixOptions, sound: &'a Sound) -> Vec<Mutant<'a>> {
    let mut mutants = Vec::new();
    for kubelet in &options.kubelets {
        let applicable = options.defects.iter().filter(|defect| defect.applies_to(&kubelet.version));
        for defect in applicable {
            let passing = sound.iter().filter(|(case, case_kubelet, outcome)| {
                case_kubelet.label == kubelet.label
                    && outcome.is_sound()
                    && cgroup_of(case) == cgroup_for(*defect)
            });
            let cases = passing.map(|(case, _, _)| case).collect();
            mutants.push(Mutant { defect: *defect, kubelet, cases });
        }
    }
    mutants
}

fn cgroup_for(defect: Defect) -> CgroupVersion {
    if defect.area().needs_cgroup_v1() { CgroupVersion::V1 } else { CgroupVersion::V2 }
}

impl Mutant<'_> {
    fn run(&self, options: &MatrixOptions, learned: &Learned) -> Result<MutantRow, MutantError> {
        let mut row = MutantRow {
            defect: self.defect.to_string(),
            area: self.defect.area().to_string(),
            about: self.defect.about().to_owned(),
            kubelet: self.kubelet.label.clone(),
            outcomes: BTreeMap::new(),
        };
        let mut cases = self.cases.clone();
        cases.retain(|case| options.full || case.case.no_mutant_reason.is_none());
        cases.sort_by_cached_key(|case| std::cmp::Reverse(learned.promise(self.defect, case)));
        for case in cases {
            let outcome = self.outcome(case, options)?;
            let is_kill = outcome.is_kill();
            row.outcomes.insert(case.id(), outcome);
            if is_kill && !options.full {
                break;
            }
        }
        Ok(row)
    }

    fn outcome(
        &self,
        case: &Arc<LoadedCase>,
        options: &MatrixOptions,
    ) -> Result<MutantCaseOutcome, MutantError> {
        let subject = Subject {
            kubelet: self.kubelet.clone(),
            cgroup: cgroup_for(self.defect),
            defect: Some(self.defect),
            seed: options.seed,
        };
        subject.run(case, &options.catalog)
    }
}

/// Runs the cases without a kill on further mutants, until each has killed one.
fn find_kills_of_idle_cases(
    options: &MatrixOptions,
    sound: &Sound,
    matrix: &mut Matrix,
) -> Result<(), MutantError> {
    let idle: Vec<String> = matrix.idle_cases().map(|case| case.case.clone()).collect();
    let mutants = mutants(options, sound);
    let rows = &matrix.mutants;
    let found = on_all_cores(idle, |id: &String| {
        let mut outcomes = Vec::new();
        let tried = |index: usize| rows[index].outcomes.contains_key(id);
        let mut order: Vec<(usize, &Arc<LoadedCase>)> = mutants
            .iter()
            .enumerate()
            .filter(|(index, _)| !tried(*index))
            .filter_map(|(index, mutant)| Some((index, *mutant.cases.iter().find(|case| case.id() == *id)?)))
            .collect();
        let none = Learned::default();
        order.sort_by_cached_key(|(index, case)| {
            std::cmp::Reverse(none.promise(mutants[*index].defect, case))
        });
        for (index, case) in order {
            let outcome = mutants[index].outcome(case, options)?;
            let is_kill = outcome.is_kill();
            outcomes.push((index, id.clone(), outcome));
            if is_kill {
                break;
            }
        }
        Ok::<_, MutantError>(outcomes)
    });
    for outcomes in found {
        for (index, case, outcome) in outcomes? {
            matrix.mutants[index].outcomes.insert(case, outcome);
        }
    }
    matrix.count_kills();
    Ok(())
}

/// Cases that have killed mutants, by area. They are tried first on the next mutants.
#[derive(Clone, Default)]
struct Learned {
    kills: BTreeMap<(String, String), usize>,
    by_defect: BTreeSet<(Defect, String)>,
}

impl Learned {
    fn learn(&mut self, defect: Defect, row: &MutantRow) {
        for case in row.killers() {
            *self.kills.entry((row.area.clone(), case.to_owned())).or_default() += 1;
            self.by_defect.insert((defect, case.to_owned()));
        }
    }

    /// Returns how likely a case kills a mutant: whether it killed the defect in another kubelet,
    /// the number of words that it shares with the defect, and its kills in the same area.
    fn promise(&self, defect: Defect, case: &LoadedCase) -> (bool, usize, usize) {
        let id = case.id();
        let shared = words(&format!("{defect} {} {}", defect.area(), defect.about()))
            .intersection(&words(&format!("{id} {}", case.case.about)))
            .count();
        let kills = self.kills.get(&(defect.area().to_string(), id.clone())).copied().unwrap_or(0);
        (self.by_defect.contains(&(defect, id)), shared, kills)
    }
}

/// Returns the words of a text with four letters or more, in lower case and in singular.
fn words(text: &str) -> BTreeSet<String> {
    let words =
        text.split(|c: char| !c.is_alphanumeric()).map(|word| word.trim_end_matches('s').to_lowercase());
    words.filter(|word| word.len() > 3).collect()
}

/// Calls `work` for every item, with one thread per core. Returns the results in the order of the
/// items.
///
/// A thread takes the next item when it has finished one, because the runs of cases differ in
/// length. For short work of equal length, `in_parallel` of the crate `evictlab-case` divides the
/// items in advance.
fn on_all_cores<T: Sync + Send, R: Send>(items: Vec<T>, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    let queue: Mutex<VecDeque<usize>> = Mutex::new((0..items.len()).collect());
    let results: Mutex<Vec<(usize, R)>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = lock(&queue).pop_front();
                    let Some(index) = next else { return };
                    let result = work(&items[index]);
                    lock(&results).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let doubled = on_all_cores((0..100).collect(), |number: &u32| number * 2);
        assert_eq!(doubled, (0..100).map(|number| number * 2).collect::<Vec<_>>());
        assert!(on_all_cores(Vec::new(), |number: &u32| *number).is_empty());
    }

    #[test]
    fn words_are_compared_in_lower_case_and_singular() {
        assert_eq!(words("Limits of a pod's emptyDir"), words("emptydir limit"));
    }
}
