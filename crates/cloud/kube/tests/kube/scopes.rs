//! What an object wants does not depend on how much of the cluster is read with it, and a change
//! concerns every object that wants something else after it.

use std::collections::{BTreeMap, BTreeSet};

use uturn_dice::Dice;
use uturn_kube::cluster::{self, Live};
use uturn_kube::related;
use uturn_kube::store::Store;
use uturn_model::ObjectRef;
use uturn_operator::clb::{Certificate, Holder};
use uturn_operator::environment::{CertificateSecret, Environment};
use uturn_operator::event::Event;
use uturn_operator::shares::Share;
use uturn_operator::wanted::{self, Balancer, Claim, Place, Wanted};

use crate::random;

/// Objects that may share load balancers, and no others.
type Objects = BTreeSet<ObjectRef>;

fn all(store: &Store) -> Objects {
    related::all(store).map(|(object, _)| object).collect()
}

/// The objects in groups: those that name the same load balancers are together.
fn groups(store: &Store) -> Vec<Objects> {
    let mut groups: Vec<(Objects, BTreeSet<String>)> = Vec::new();
    for (object, value) in related::all(store) {
        let mut group = (Objects::from([object]), cluster::existing(value));
        let (shared, others): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|(_, ids)| !ids.is_disjoint(&group.1));
        for (objects, ids) in shared {
            group.0.extend(objects);
            group.1.extend(ids);
        }
        groups = others;
        groups.push(group);
    }
    groups.into_iter().map(|(objects, _)| objects).collect()
}

fn environment(live: &Live) -> Environment {
    let uids = live.objects.iter();
    let certificate = Certificate { server: "cert-1".to_owned(), authority: None };
    Environment {
        cluster: "cls-aaaaaaaa".to_owned(),
        network: "vpc-aaaaaaaa".to_owned(),
        uids: uids
            .filter_map(|(object, live)| Some((object.clone(), live.uid()?.to_owned())))
            .collect(),
        secrets: BTreeMap::from([(
            "shop/cert".parse().unwrap(),
            CertificateSecret::Certificate(certificate),
        )]),
        // Of the others, one namespace is the user.
        shares: ["lb-aaaaaaa1=*", "lb-aaaaaaa2=shop,bank"]
            .into_iter()
            .map(|text| text.parse::<Share>().unwrap())
            .collect(),
        ..Environment::default()
    }
}

/// What objects want, with only what they depend on read.
fn of_scope(store: &Store, objects: &Objects) -> Wanted {
    let live = cluster::read(store, objects).unwrap();
    let is_meant = |object: &ObjectRef| objects.contains(object);
    wanted::wanted_for(&live.cluster.clone().unwrap(), &environment(&live), is_meant).unwrap()
}

/// What all objects want, with the whole cluster read.
fn of_all(store: &Store) -> (Wanted, Live) {
    let live = cluster::read(store, &all(store)).unwrap();
    (wanted::wanted(&live.cluster.clone().unwrap(), &environment(&live)).unwrap(), live)
}

/// The part of what is wanted that is for these objects.
fn part(all: &Wanted, live: &Live, objects: &Objects) -> Wanted {
    let is_own = |balancer: &&Balancer| {
        let own = balancer.owners.iter().filter(|owner| objects.contains(&owner.object)).count();
        assert!(own == 0 || own == balancer.owners.len(), "{objects:?} shares a load balancer");
        own > 0
    };
    let values = objects.iter().filter_map(|object| live.objects.get(object));
    let uids: BTreeSet<&str> = values.clone().filter_map(|live| live.uid()).collect();
    let existing: BTreeSet<String> = values.flat_map(|live| live.existing()).collect();
    let events = all.events.iter().filter(|event| objects.contains(&event.object));
    let is_claimed = |(_, claims): &(&String, &Vec<Claim>)| {
        claims.iter().any(|claim| objects.contains(&claim.note.object))
    };
    Wanted {
        balancers: all.balancers.iter().filter(is_own).cloned().collect(),
        untouched: all.untouched.iter().filter(|uid| uids.contains(&***uid)).cloned().collect(),
        untouched_existing: all.untouched_existing.intersection(&existing).cloned().collect(),
        claims: all
            .claims
            .iter()
            .filter(is_claimed)
            .map(|(id, all)| (id.clone(), all.clone()))
            .collect(),
        events: events.cloned().collect(),
    }
}

/// How often what matters occurred.
#[derive(Debug, Default)]
struct Seen {
    balancers: usize,
    shared: usize,
    pods: usize,
    checks: usize,
    untouched: usize,
    faults: BTreeSet<&'static str>,
}

impl Seen {
    fn note(&mut self, wanted: &Wanted) {
        let listeners = wanted.balancers.iter().flat_map(|balancer| balancer.listeners.values());
        for wish in listeners {
            let listener = &wish.listener;
            let targets = listener.groups().into_values().flat_map(|targets| targets.keys());
            let is_pod = |holder: &Holder| matches!(holder, Holder::Interface(address) if address.to_string().starts_with("10.1."));
            self.pods += targets.filter(|target| is_pod(&target.holder)).count();
            self.checks += usize::from(listener.settings.health_check.is_some());
            let checks =
                listener.rules.values().filter(|rule| rule.settings.health_check.is_some());
            self.checks += checks.count();
        }
        let shared = |balancer: &&Balancer| {
            matches!(balancer.place, Place::Existing(_)) && balancer.owners.len() > 1
        };
        self.balancers += wanted.balancers.len();
        self.shared += wanted.balancers.iter().filter(shared).count();
        self.untouched += wanted.untouched.len();
        self.faults.extend(wanted.events.iter().map(|event: &Event| event.code));
    }
}

#[test]
fn what_objects_want_does_not_depend_on_what_else_is_read() {
    let mut seen = Seen::default();
    for seed in 1..=150 {
        let store = random::store(&mut Dice::of_case(17, seed));
        let (whole, live) = of_all(&store);
        seen.note(&whole);
        let groups = groups(&store);
        for objects in &groups {
            let expected = part(&whole, &live, objects);
            assert_eq!(of_scope(&store, objects), expected, "seed {seed}: {objects:?}");
        }
        // Groups that are read together, as the controllers do it.
        let some: Objects = groups.iter().step_by(2).flatten().cloned().collect();
        assert_eq!(of_scope(&store, &some), part(&whole, &live, &some), "seed {seed}: {some:?}");
    }
    let all = [seen.balancers, seen.shared, seen.pods, seen.checks, seen.untouched];
    assert!(all.iter().all(|count| *count > 30), "{seen:?}");
    for code in ["W1000", "E4014", "E4026", "E4033", "E4042", "E4047", "E4101", "E9002"] {
        assert!(seen.faults.contains(code), "{code}: {seen:?}");
    }
}

#[test]
fn a_change_concerns_all_objects_that_want_something_else_after_it() {
    let (mut changed, mut others) = (0, 0);
    for seed in 1..=50 {
        let dice = &mut Dice::of_case(18, seed);
        let mut store = random::store(dice);
        for _ in 0..6 {
            let (before, live_before) = of_all(&store);
            let all_before = all(&store);
            let what = random::change(dice, &mut store);
            let (after, live_after) = of_all(&store);
            let changes = store.take_changes();
            let touched: Objects =
                changes.iter().flat_map(|change| related::touched(&store, change)).collect();
            // Those are dealt with together that share load balancers.
            let groups = groups(&store);
            let with: Objects = groups
                .into_iter()
                .filter(|group| !group.is_disjoint(&touched))
                .flatten()
                .chain(touched.iter().cloned())
                .collect();
            for object in all_before.union(&all(&store)) {
                let own = Objects::from([object.clone()]);
                let [was, is] = [(&before, &live_before), (&after, &live_after)]
                    .map(|(wanted, live)| of_object(wanted, live, &own));
                // Nothing was made for an object that wants nothing any more and is not held.
                let is_idle = related::live(&store, object).is_some() && !store.index().has(object);
                if was != is && !is_idle {
                    changed += 1;
                    assert!(with.contains(object), "seed {seed}: {what}: {object} is forgotten");
                } else if !with.contains(object) {
                    others += 1;
                }
            }
        }
    }
    assert!(changed > 100 && others > 1000, "{changed} objects changed, {others} were left");
}

/// What an object wants, with what others want of the load balancers that it shares.
fn of_object(wanted: &Wanted, live: &Live, own: &Objects) -> Wanted {
    let balancers = wanted.balancers.iter();
    let is_own =
        |balancer: &&Balancer| balancer.owners.iter().any(|owner| own.contains(&owner.object));
    let balancers: Vec<Balancer> = balancers.filter(is_own).cloned().collect();
    let others = Wanted { balancers: Vec::new(), ..wanted.clone() };
    Wanted { balancers, ..part(&others, live, own) }
}
