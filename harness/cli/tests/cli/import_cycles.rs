//! Files of a crate do not import each other in a cycle: their dependencies point one way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::modules::{Dependencies, Modules};

/// Returns the root files of the library and the programs of every package, and of tests outside
/// `tests`, as of the package `cases`.
fn crate_roots(workspace: &Path) -> Vec<PathBuf> {
    let read = |file: PathBuf| fs::read_to_string(file).unwrap().parse::<Table>().unwrap();
    let manifest = read(workspace.join("Cargo.toml"));
    let members =
        manifest["workspace"]["members"].as_array().unwrap().iter().map(|dir| dir.as_str().unwrap());
    let roots = members.flat_map(|dir| {
        let manifest = read(workspace.join(dir).join("Cargo.toml"));
        let targets = ["lib", "bin", "test"].into_iter().filter_map(|kind| manifest.get(kind));
        let targets =
            targets.flat_map(|targets| targets.as_array().cloned().unwrap_or(vec![targets.clone()]));
        let named =
            targets.filter_map(|target| target.get("path").and_then(Value::as_str).map(str::to_owned));
        let named = named.filter(|path| !path.starts_with("tests/"));
        let paths: BTreeSet<String> = named.chain(["src/lib.rs", "src/main.rs"].map(str::to_owned)).collect();
        paths.into_iter().map(move |path| workspace.join(dir).join(path))
    });
    roots.filter(|root| root.is_file()).collect()
}

/// Returns a shortest cycle through each file that is in one, without repeats. A cycle begins with
/// the first of its files in the order of their names.
fn cycles(dependencies: &Dependencies) -> BTreeSet<Vec<&Path>> {
    let mut cycles = BTreeSet::new();
    for start in dependencies.keys() {
        if let Some(mut cycle) = shortest_cycle(dependencies, start) {
            let first = (0..cycle.len()).min_by_key(|nth| cycle[*nth]).unwrap();
            cycle.rotate_left(first);
            cycles.insert(cycle);
        }
    }
    cycles
}

fn shortest_cycle<'a>(dependencies: &'a Dependencies, start: &'a Path) -> Option<Vec<&'a Path>> {
    let mut came_from: BTreeMap<&Path, &Path> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(file) = queue.pop_front() {
        for next in dependencies.get(file).into_iter().flat_map(BTreeMap::keys) {
            if next == start {
                let mut cycle = vec![file];
                while let Some(before) = came_from.get(cycle[cycle.len() - 1]) {
                    cycle.push(before);
                }
                cycle.reverse();
                return Some(cycle);
            }
            if !came_from.contains_key(&**next) {
                came_from.insert(next, file);
                queue.push_back(next);
            }
        }
    }
    None
}

/// Writes a cycle as a chain of files, each with the path by which the one before names it.
fn describe(cycle: &[&Path], dependencies: &Dependencies, workspace: &Path) -> String {
    let name = |file: &Path| file.strip_prefix(workspace).unwrap().display().to_string();
    let mut text = name(cycle[0]);
    for (nth, file) in cycle.iter().enumerate() {
        let next = cycle[(nth + 1) % cycle.len()];
        text += &format!("\n    -> {} ({})", name(next), dependencies[*file][next]);
    }
    text
}

/// Describes the import cycles of a crate.
fn import_cycles(root: &Path, workspace: &Path) -> Vec<String> {
    let dependencies = Modules::read(root).dependencies();
    cycles(&dependencies).iter().map(|cycle| describe(cycle, &dependencies, workspace)).collect()
}

#[test]
fn no_file_imports_itself_through_others() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let roots = crate_roots(&workspace);
    assert!(roots.len() > 15, "only {roots:?} were found");
    let found: Vec<String> = roots.iter().flat_map(|root| import_cycles(root, &workspace)).collect();
    let help = "move what both files use into a file of its own";
    assert!(found.is_empty(), "import cycles; {help}:\n{}", found.join("\n"));
}

/// Returns the cycles of a crate of these files.
fn cycles_of(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    import_cycles(&folder.path().join("lib.rs"), folder.path())
}

#[test]
fn a_cycle_is_found_through_re_exports_and_inline_paths() {
    const LIB: (&str, &str) = ("lib.rs", "//! A crate.\nmod fruit;\npub mod shop;\npub use fruit::*;");
    const FRUIT: (&str, &str) = ("fruit/mod.rs", "mod apple;\npub use apple::{Apple as Fruit};");
    let through = |shop, apple| cycles_of(&[LIB, FRUIT, ("shop.rs", shop), ("fruit/apple.rs", apple)]);
    let apple = "pub struct Apple(Option<Box<crate::shop::Shop>>);";
    let cycle = |path: &str| {
        vec![format!("fruit/apple.rs\n    -> shop.rs (shop::Shop)\n    -> fruit/apple.rs ({path})")]
    };

    assert_eq!(through("use super::fruit::Fruit;\npub struct Shop(Fruit);", apple), cycle("fruit::Fruit"));
    assert_eq!(through("pub struct Shop(crate::Fruit);", apple), cycle("Fruit"));
    assert_eq!(through("use crate::*;\npub struct Shop(Fruit);", apple), cycle("Fruit"));
    assert_eq!(
        through("fn sell() {\n    use crate::fruit;\n    fruit::Fruit::peel();\n}\npub struct Shop;", apple),
        cycle("fruit::Fruit::peel")
    );
    assert_eq!(
        through("#[serde(with = \"crate::fruit::Fruit\")]\npub struct Shop;", apple),
        cycle("fruit::Fruit")
    );

    let without_cycle: Vec<String> = vec![];
    assert_eq!(
        through("use crate::fruit::Fruit;\npub struct Shop(Fruit);", "pub struct Apple;"),
        without_cycle
    );
    assert_eq!(through("// crate::Fruit\npub const SHOP: &str = \"crate::Fruit\";", apple), without_cycle);
    assert_eq!(
        through("pub struct Shop;\n#[cfg(test)]\nmod tests {\n    use crate::fruit::Fruit;\n}", apple),
        without_cycle
    );
}
