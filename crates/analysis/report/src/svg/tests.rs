//! Pictures: nothing overlaps, and retries are drawn once.

use proptest::prelude::*;
use uturn_model::route::{Direction, Hop};
use uturn_model::{Evidence, Name, Place, Step, StepKind};

use crate::sample::{any_text, flow, verdicts};
use crate::svg;

proptest! {
    #[test]
    fn nothing_in_a_picture_overlaps(text in any_text()) {
        let drawn = svg::trace(&flow(), &verdicts(&text), &[]);
        let boxes: Vec<[f64; 4]> = drawn
            .split("<rect ")
            .skip(2)
            .map(|rect| ["x", "y", "width", "height"].map(|name| number(rect, name)))
            .collect();
        prop_assert!(boxes.len() > 8);
        for (at, first) in boxes.iter().enumerate() {
            for second in &boxes[at + 1..] {
                let apart = |i: usize| first[i] + first[i + 2] <= second[i] || second[i] + second[i + 2] <= first[i];
                prop_assert!(apart(0) || apart(1), "{first:?} {second:?}");
            }
            let width = number(drawn.split("<svg").nth(1).unwrap(), "width");
            prop_assert!(first[0] >= 0.0 && first[0] + first[2] <= width, "{first:?} of {width}");
        }
    }
}

/// Twenty targets that refuse, one after the other, are drawn once.
#[test]
fn retries_are_drawn_once() {
    let mut all = verdicts("x");
    let route = &mut all[0].routes[0];
    let tried = |i: usize| {
        let name = Name::new(format!("t{i}")).unwrap();
        let by = || Evidence::kernel("x");
        let lb = Place::LoadBalancer("x".into());
        [
            (lb, Step::new(StepKind::Balance, "picks", by())),
            (Place::Node(name), Step::new(StepKind::Reject, "refuses", by())),
        ]
        .map(|(place, step)| Hop { place, direction: Direction::Out, steps: vec![step] })
    };
    let ends = route.hops.split_off(2);
    route.hops.extend((0..20).flat_map(tried).chain(ends));
    let drawn = svg::trace(&flow(), &all, &[]);
    assert!(drawn.contains("the same with 19 more targets"), "{drawn}");
    assert!(drawn.contains(">t0<") && !drawn.contains(">t1<"));
}

fn number(tag: &str, name: &str) -> f64 {
    let from = tag.find(&format!("{name}=\"")).unwrap() + name.len() + 2;
    tag[from..].split('"').next().unwrap().parse().unwrap()
}
