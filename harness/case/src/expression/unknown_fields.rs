//! Fields that an expression reads and that cannot exist.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, operators};

use super::shape::{ITERATION, ObjectTypes, Shape};
use super::variable::Variable;

/// A field that an object cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownField {
    /// The object, as the expression names it.
    pub(crate) object: String,
    /// The field.
    pub(crate) name: String,
    /// The fields that the object can have.
    pub(crate) valid_fields: Vec<&'static str>,
}

/// Returns the fields that an expression reads and that cannot exist.
pub(super) fn unknown_fields(expression: &IdedExpr, objects: &ObjectTypes<'_>) -> Vec<UnknownField> {
    let mut inference = ShapeInference { objects, bound: Vec::new(), found: Vec::new() };
    inference.infer(expression);
    inference.found
}

struct ShapeInference<'a> {
    objects: &'a ObjectTypes<'a>,
    /// Variables that macros bind, innermost last.
    bound: Vec<(String, Shape)>,
    found: Vec<UnknownField>,
}

impl ShapeInference<'_> {
    fn infer(&mut self, expression: &IdedExpr) -> Shape {
        match &expression.expr {
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => {
                let operand = self.infer(&select.operand);
                self.field(&select.operand, &operand, &select.field)
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                let items: Vec<Shape> = list.elements.iter().map(|item| self.infer(item)).collect();
                Shape::List(Box::new(items.into_iter().fold(Shape::Never, Shape::or)))
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.infer(&entry.key);
                        self.infer(&entry.value);
                    }
                }
                Shape::Any
            }
            Expr::Comprehension(comprehension) => {
                let item = self.infer(&comprehension.iter_range).iterated();
                let start = self.infer(&comprehension.accu_init);
                let outside = self.bound.len();
                self.bound.push((comprehension.iter_var.clone(), item));
                self.bound.extend(comprehension.iter_var2.iter().map(|name| (name.clone(), Shape::Any)));
                self.bound.push((comprehension.accu_var.clone(), start));
                self.infer(&comprehension.loop_cond);
                let step = self.infer(&comprehension.loop_step);
                self.bound.truncate(outside);
                self.bound.push((comprehension.accu_var.clone(), step));
                let result = self.infer(&comprehension.result);
                self.bound.truncate(outside);
                result
            }
            _ => Shape::Any,
        }
    }

    fn variable(&self, name: &str) -> Shape {
        let bound = self.bound.iter().rev().find(|(bound, _)| bound == name);
        match (bound, Variable::from_name(name)) {
            (Some((_, shape)), _) => shape.clone(),
            (None, Some(variable)) => Shape::of_variable(variable, self.objects),
            (None, None) => Shape::Any,
        }
    }

    fn field(&mut self, operand: &IdedExpr, shape: &Shape, name: &str) -> Shape {
        shape.field(name).unwrap_or_else(|valid_fields| {
            let unknown = UnknownField { object: describe(operand), name: name.to_owned(), valid_fields };
            if !self.found.contains(&unknown) {
                self.found.push(unknown);
            }
            Shape::Any
        })
    }

    fn call(&mut self, call: &CallExpr) -> Shape {
        if let Some(target) = &call.target {
            self.infer(target);
        }
        let shapes: Vec<Shape> = call.args.iter().map(|argument| self.infer(argument)).collect();
        match (&*call.func_name, &call.args[..], &shapes[..]) {
            (operators::INDEX, [operand, key], [shape, _]) => match &key.expr {
                Expr::Literal(LiteralValue::String(key)) => self.field(operand, shape, key.inner()),
                _ => shape.indexed(),
            },
            (operators::CONDITIONAL, [condition, ..], [_, then, otherwise]) => match &condition.expr {
                Expr::Ident(name) if name == ITERATION => then.clone(),
                _ => then.clone().or(otherwise.clone()),
            },
            (operators::ADD, _, [one, other]) => one.clone().or(other.clone()),
            (name, ..) => Shape::of_function(name),
        }
    }
}

/// Returns the text of a path, such as `pods.web.spec`.
fn describe(expression: &IdedExpr) -> String {
    match &expression.expr {
        Expr::Ident(name) => name.clone(),
        Expr::Select(select) => format!("{}.{}", describe(&select.operand), select.field),
        Expr::Call(CallExpr { func_name, args, .. }) if func_name == operators::INDEX => match &args[..] {
            [of, key] => match &key.expr {
                Expr::Literal(LiteralValue::String(key)) => format!("{}['{}']", describe(of), key.inner()),
                _ => format!("{}[…]", describe(of)),
            },
            _ => "…".to_owned(),
        },
        Expr::Call(call) => format!("{}(…)", call.func_name),
        _ => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{GOOD, problems};
    use crate::parse;

    /// Returns the valid case with a Job `job`, a ConfigMap `map` and more lines.
    fn with(more: &str) -> String {
        let job = "objects: [{apiVersion: batch/v1, kind: Job, metadata: {name: job}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: agnhost:2.52}]}}}}, \
                   {apiVersion: v1, kind: ConfigMap, metadata: {name: map}}]\n";
        GOOD.replace("expect:\n", &format!("{job}{more}\nexpect:\n"))
    }

    /// Names that no kubelet and no API has, with the place of the name and a suggestion.
    #[test]
    fn misspelt_fields_and_metrics_are_reported_at_their_place() {
        let rows = [
            ("kubelet-config: {evictionHrad: {}}", "evictionHrad", "evictionHard"),
            ("kubelet-config: {memorySwap: {swapBehaviour: NoSwap}}", "swapBehaviour", "swapBehavior"),
            (
                "do: [{configure: {evictionSoft: {memory.availble: 1Mi}}}]",
                "memory.availble",
                "memory.available",
            ),
            ("until: size(pods.alloc.spec.contaners) == 1", "contaners", "containers"),
            ("until: has(pods.alloc.status.mesage)", "mesage", "message"),
            (
                "until: podList.exists(p, p.spec.containers.exists(c, c.resources.limts.memory == '1'))",
                "limts",
                "limits",
            ),
            ("until: >-\n  t > 5\n  && node.status.conditions.exists(c, c.typ == 'Ready')", "typ", "type"),
            ("until: condition(pods.alloc, 'Ready').reson == 'x'", "reson", "reason"),
            (
                "until: history.alloc.map(h, h.conditions.Ready).exists(c, c.statuss == 'True')",
                "statuss",
                "status",
            ),
            ("until: stats.alloc.el1.rootfs.usedByte > 5", "usedByte", "usedBytes"),
            ("until: samples[samples.size() - 1].pods.exists(p, p.podRef.nmae == 'a')", "nmae", "name"),
            ("until: objects.job.status.faild == 1", "faild", "failed"),
            ("until: \"objects['job'].status.faild == 1\"", "faild", "failed"),
            ("until: \"{'a': pods.alloc.status.mesage}.size() == 1\"", "mesage", "message"),
            (
                "until: samples[0].node.systemContainers[0].memory.workingSet == 1",
                "workingSet",
                "workingSetBytes",
            ),
            ("until: configz['evictionHrd'].size() == 1", "evictionHrd", "evictionHard"),
            ("until: metrics.kubelet_evictoins.size() == 1", "kubelet_evictoins", "kubelet_evictions"),
            ("until: evictions.map(e, e.containers.el1.usge)[0] == 1", "usge", "usage"),
        ];
        for (more, misspelt, near) in rows {
            let text = with(more);
            let found = problems(&text);
            let (index, line) = text.lines().enumerate().find(|(_, line)| line.contains(misspelt)).unwrap();
            let at = format!("good.yaml:{}:{}\n", index + 1, line.find(misspelt).unwrap() + 1);
            assert!(
                found.contains(&at) && found.contains(&format!("did you mean `{near}`?")),
                "{more}: {found}"
            );
            assert!(found.contains("1 problem in 1 file"), "{found}");
        }
    }

    #[test]
    fn fields_that_may_exist_are_accepted() {
        for valid in [
            "until: podList.all(p, p.metadata.labels.anything == 'x' && p.status.resources.limits.cpu == '1')",
            "until: objects.job.metadata.annotations['a/b'] == '1' && objects.map.data.any == '1'",
            "until: metrics.go_goroutines.exists(m, m.labels.any == '1') && metrics.kubelet_pod_start_duration_seconds_sum.size() > 0",
            "until: podList.map(p, [p.status.phase, p.status.reason]).filter(pair, pair[0] == 'Failed').size() == 1",
            "kubelet-config: {evictionMinimumReclaim: {nodefs.available: 10Mi}, mergeDefaultEvictionSettings: true}",
        ] {
            assert!(
                parse("suite", "suite/good.yaml", "good.yaml", with(valid).as_bytes()).is_ok(),
                "{valid}"
            );
        }
    }
}
