//! The modules of a crate: their items, imports and paths, and the files to which these refer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Segments of a path. That of a module begins at the root of its crate.
type Segments = Vec<String>;

/// Imports of imports that are followed.
const MAX_IMPORTS: usize = 12;

/// A module without its tests.
#[derive(Default)]
struct Module {
    file: PathBuf,
    /// Names from `use`, each with its path as written.
    imports: Vec<(String, Segments)>,
    /// Paths before `::*` in `use`.
    globs: Vec<Segments>,
    items: BTreeSet<String>,
    /// Paths of two segments or more outside `use`.
    paths: BTreeSet<Segments>,
    /// Identifiers that a glob may have imported.
    words: BTreeSet<String>,
    /// Contains more than modules and imports.
    has_code: bool,
}

/// The modules of a crate by their paths.
#[derive(Default)]
pub(crate) struct Modules(BTreeMap<Segments, Module>);

/// For each file, the files of its crate on which it depends, each with a path that names one of
/// its items.
pub(crate) type Dependencies = BTreeMap<PathBuf, BTreeMap<PathBuf, String>>;

impl Modules {
    /// Reads a crate from its root file.
    pub(crate) fn read(root: &Path) -> Self {
        let mut modules = Self::default();
        modules.read_file(vec![], root, root.parent().unwrap());
        modules
    }

    /// Reads a file; the files of its modules are in `children`.
    fn read_file(&mut self, path: Segments, file: &Path, children: &Path) {
        let text = fs::read_to_string(file).unwrap();
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.read_module(path, file, children, tokens);
    }

    fn read_module(&mut self, path: Segments, file: &Path, children: &Path, tokens: TokenStream) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = &tokens[..];
        while !rest.is_empty() {
            let (attributes, item, after) = next_item(rest);
            rest = after;
            if is_test(attributes) {
                continue;
            }
            module.add_paths(attributes);
            let (keyword, name) = keyword_and_name(item);
            match (keyword.as_deref(), name, item.last()) {
                (Some("mod"), Some(name), Some(TokenTree::Group(body))) => {
                    let path = child(&path, &name);
                    self.read_module(path, file, &children.join(name), body.stream());
                }
                (Some("mod"), Some(name), _) => {
                    let path = child(&path, &name);
                    self.read_child(path, children, &name);
                }
                (Some("use"), ..) => module.add_paths(item),
                (keyword, name, _) => {
                    module.has_code |= keyword.is_some();
                    module.items.extend(name);
                    module.add_paths(item);
                }
            }
        }
        self.0.insert(path, module);
    }

    fn read_child(&mut self, path: Segments, dir: &Path, name: &str) {
        let (file, index) = (dir.join(format!("{name}.rs")), dir.join(name).join("mod.rs"));
        self.read_file(path, if index.is_file() { &index } else { &file }, &dir.join(name));
    }

    /// Returns the dependencies between the files. A file that contains only modules and imports
    /// does not depend on others: a name that it exports is a dependency on the file that defines
    /// it.
    pub(crate) fn dependencies(&self) -> Dependencies {
        let mut dependencies = Dependencies::new();
        let with_code: BTreeSet<&Path> =
            self.0.values().filter(|module| module.has_code).map(|module| module.file.as_path()).collect();
        for (own, module) in self.0.iter().filter(|(_, module)| with_code.contains(&*module.file)) {
            let imported = module.imports.iter().map(|(_, path)| path);
            let named = imported.chain(&module.paths).filter_map(|path| self.absolute(own, path));
            let named = named.flat_map(|path| {
                let files = self.files(&path);
                files.into_iter().map(move |file| (file, path.join("::")))
            });
            let globs = module.globs.iter().filter_map(|glob| self.absolute(own, glob));
            let globbed = globs.flat_map(|glob| {
                let words = module.words.iter().map(move |word| child(&glob, word));
                words.flat_map(|path| {
                    let files = self.definitions(&path, MAX_IMPORTS);
                    files.into_iter().map(move |file| (file, path.join("::")))
                })
            });
            let uses = dependencies.entry(module.file.clone()).or_default();
            for (file, path) in named.chain(globbed).filter(|(file, _)| *file != module.file) {
                uses.entry(file.to_owned()).or_insert(path);
            }
        }
        dependencies
    }

    /// Returns a path of a module from the root of the crate; `None` for a path of another crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Segments> {
        let supers = path.iter().take_while(|segment| *segment == "super").count();
        let first = path.first()?;
        let own_module = child(module, first);
        if supers > 0 {
            let parent = &module[..module.len().checked_sub(supers)?];
            Some([parent, &path[supers..]].concat())
        } else if first == "crate" {
            Some(path[1..].to_vec())
        } else if first == "self" {
            self.absolute(module, &path[1..]).or_else(|| Some([module, &path[1..]].concat()))
        } else if self.0.contains_key(&own_module) || self.0[module].items.contains(first) {
            Some([module, path].concat())
        } else {
            let imports = &self.0[module].imports;
            let (_, import) = imports.iter().find(|(name, import)| name == first && import[0] != *first)?;
            Some([self.absolute(module, import)?, path[1..].to_vec()].concat())
        }
    }

    /// Returns the files that define the item of this path: its module's, if no definition is
    /// known, as of an item from a macro.
    fn files(&self, path: &[String]) -> BTreeSet<&Path> {
        let mut files = self.definitions(path, MAX_IMPORTS);
        if files.is_empty() {
            let (module, _) = self.module_of(path);
            files.insert(&self.0[module].file);
        }
        files
    }

    /// Returns the files with a definition of this path. A module and a function can share a name.
    fn definitions(&self, path: &[String], imports: usize) -> BTreeSet<&Path> {
        let mut found: BTreeSet<&Path> = self.0.get(path).map(|module| &*module.file).into_iter().collect();
        let (own, [name, rest @ ..]) = self.module_of(path) else { return found };
        if imports == 0 {
            return found;
        }
        let module = &self.0[own];
        if module.items.contains(name) {
            found.insert(&module.file);
        }
        let imported =
            module.imports.iter().filter(|(import, _)| import == name).map(|(_, path)| path.clone());
        let globbed = module.globs.iter().map(|glob| child(glob, name));
        for target in imported.chain(globbed).filter_map(|target| self.absolute(own, &target)) {
            if target != path {
                found.extend(self.definitions(&[target, rest.to_vec()].concat(), imports - 1));
            }
        }
        found
    }

    /// Splits a path into its module and the item. The last segment belongs to the item.
    fn module_of<'a>(&self, path: &'a [String]) -> (&'a [String], &'a [String]) {
        let is_module = |length: &usize| self.0.contains_key(&path[..*length]);
        path.split_at((0..path.len()).rev().find(is_module).unwrap_or(0))
    }
}

impl Module {
    /// Adds the paths of code: of expressions, types, attributes and inner `use`.
    fn add_paths(&mut self, tokens: &[TokenTree]) {
        let mut at = 0;
        while at < tokens.len() {
            let rest = &tokens[at..];
            at += match rest {
                [TokenTree::Ident(keyword), TokenTree::Ident(_) | TokenTree::Group(_), ..]
                    if keyword == "use" =>
                {
                    let end = rest.iter().position(|token| is(token, ';')).unwrap_or(rest.len());
                    self.add_use(&[], &rest[1..end]);
                    end
                }
                [hash, TokenTree::Group(attribute), ..] if is(hash, '#') => {
                    if is_test(&rest[..2]) {
                        rest.len() - next_item(rest).2.len()
                    } else {
                        self.add_attribute(&attribute.stream().into_iter().collect::<Vec<_>>());
                        2
                    }
                }
                [TokenTree::Group(group), ..] => {
                    self.add_paths(&group.stream().into_iter().collect::<Vec<_>>());
                    1
                }
                [TokenTree::Ident(_), ..] => {
                    let (path, length) = path_at(rest);
                    let before = &tokens[..at];
                    let is_field = before.last().is_some_and(|token| is(token, '.'));
                    if !is_field && !ends_with_separator(before) {
                        self.words.insert(path[0].clone());
                        self.paths.extend(Some(path).filter(|path| path.len() > 1));
                    }
                    length
                }
                _ => 1,
            };
        }
    }

    /// Adds the paths of an attribute, also those in strings: `with = "path::to"`.
    fn add_attribute(&mut self, tokens: &[TokenTree]) {
        if matches!(tokens.first(), Some(TokenTree::Ident(name)) if name == "doc") {
            return;
        }
        self.add_paths(tokens);
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    self.add_attribute(&group.stream().into_iter().collect::<Vec<_>>());
                }
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    let text = text.trim_matches('"');
                    if text.contains("::") && text.chars().all(|c| c.is_alphanumeric() || "_:".contains(c)) {
                        self.paths.insert(text.split("::").map(str::to_owned).collect());
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }

    /// Adds the tree of a `use`, below a prefix.
    fn add_use(&mut self, prefix: &[String], tree: &[TokenTree]) {
        let mut path = prefix.to_vec();
        let mut tokens = tree.iter().filter(|token| !is(token, ':'));
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => {
                    let parts: Vec<TokenTree> = group.stream().into_iter().collect();
                    let parts = parts.split(|token| is(token, ',')).filter(|part| !part.is_empty());
                    parts.for_each(|part| self.add_use(&path, part));
                    return;
                }
                TokenTree::Ident(word) if word == "as" => {
                    let name = tokens.next().map(ToString::to_string).unwrap_or_default();
                    path.pop_if(|last| last == "self");
                    return self.imports.push((name, path));
                }
                TokenTree::Ident(segment) => path.push(segment.to_string()),
                _ => return self.globs.push(path),
            }
        }
        path.pop_if(|last| last == "self");
        self.imports.extend(path.last().cloned().map(|name| (name, path)));
    }
}

fn child(path: &[String], name: &str) -> Segments {
    [path, &[name.to_owned()]].concat()
}

fn is(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

fn ends_with_separator(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [.., first, second] if is(first, ':') && is(second, ':'))
}

/// Returns the path at the begin of these tokens, and the number of its tokens.
fn path_at(tokens: &[TokenTree]) -> (Segments, usize) {
    let (mut path, mut at) = (vec![tokens[0].to_string()], 1);
    while let [first, second, TokenTree::Ident(segment), ..] = &tokens[at..] {
        if !is(first, ':') || !is(second, ':') {
            break;
        }
        path.push(segment.to_string());
        at += 3;
    }
    (path, at)
}

/// Splits tokens into the attributes of the first item, the item, and the rest.
fn next_item(tokens: &[TokenTree]) -> (&[TokenTree], &[TokenTree], &[TokenTree]) {
    let mut attributes = 0;
    while let [hash, rest @ ..] = &tokens[attributes..] {
        if !is(hash, '#') {
            break;
        }
        attributes += if rest.first().is_some_and(|token| is(token, '!')) { 3 } else { 2 };
    }
    let (attributes, rest) = tokens.split_at(attributes.min(tokens.len()));
    let keyword = keyword_and_name(rest).0;
    let has_value = matches!(keyword.as_deref(), Some("use" | "const" | "static" | "type"));
    let is_body = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !has_value,
        other => is(other, ';'),
    };
    let end = rest.iter().position(is_body).map_or(rest.len(), |end| end + 1);
    let (item, rest) = rest.split_at(end);
    (attributes, item, rest)
}

/// Returns the keyword of an item, and its name. Other items, as `impl`, have their first word.
fn keyword_and_name(item: &[TokenTree]) -> (Option<String>, Option<String>) {
    const NAMED: [&str; 10] =
        ["mod", "struct", "enum", "union", "fn", "const", "static", "trait", "type", "macro_rules"];
    let words = item.iter().filter_map(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    let words: Vec<String> =
        words.filter(|word| !["pub", "async", "unsafe", "extern", "mut"].contains(&&**word)).collect();
    match &words[..] {
        [first, second, name, ..] if first == "const" && second == "fn" => {
            (Some(second.clone()), Some(name.clone()))
        }
        [keyword, name, ..] if NAMED.contains(&&**keyword) => (Some(keyword.clone()), Some(name.clone())),
        words => (words.first().cloned(), None),
    }
}

/// Returns whether attributes contain `#[test]`, or a `#[cfg]` that only tests meet.
fn is_test(attributes: &[TokenTree]) -> bool {
    attributes.iter().any(|token| {
        let text = token.to_string().replace(' ', "");
        let is_cfg = text.starts_with("[cfg(test") || text.starts_with("[cfg(all(test");
        is_cfg || text == "[test]"
    })
}
