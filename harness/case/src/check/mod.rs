//! Checks of a case beyond its syntax: references resolve, and the parts fit together.

mod assertions;
mod check_case;
mod checker;
mod expect;
mod expressions;
mod growth;
mod kubelet_config;
mod labels;
mod manifests;
mod node;
mod pod_specs;
mod pods;
mod pressure;
mod steps;

pub(crate) use check_case::check_case;
pub(crate) use checker::PathProblem;
