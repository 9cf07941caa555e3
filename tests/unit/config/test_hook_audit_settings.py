"""What the section `hook_audit` refuses before anything is run, and in which words."""

import pytest

from mragaudit.config import load_settings
from mragaudit.errors import ConfigError

UNKNOWN_ATTACK = '"rag_theif" is no known attack; did you mean "rag_thief"?'


def fault(**section):
    with pytest.raises(ConfigError) as caught:
        load_settings({"hook_audit": section})
    return str(caught.value).removeprefix("config key ")


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"attacks": ["rag_theif"]}, f'"hook_audit.attacks.0": attack: {UNKNOWN_ATTACK}'),
        ({"attack_options": {"rag_theif": {}}}, f'"hook_audit": attack: {UNKNOWN_ATTACK}'),
        ({"canaries": {"attack": "rag_theif"}}, f'"hook_audit.canaries.attack": attack: {UNKNOWN_ATTACK}'),
        ({"adaptive": {"probes": ["rag_theif"]}}, f'"hook_audit.adaptive.probes.0": attack: {UNKNOWN_ATTACK}'),
        ({"adaptive": {"fixed_attack": "rag_theif"}}, f'"hook_audit.adaptive.fixed_attack": attack: {UNKNOWN_ATTACK}'),
        (
            {"defenses": [["none"], ["padd"]]},
            '"hook_audit.defenses": defense: "padd" is no known defense; did you mean "pad"?',
        ),
        (
            {"defense_options": {"padd": {}}},
            '"hook_audit": defense: "padd" is no known defense; did you mean "pad"?',
        ),
        (
            {"corpora": ["emails"]},
            "\"hook_audit.corpora.0\" is 'emails'; it should be 'email', 'business' or 'pubmedqa'",
        ),
        (
            {"adaptive": {"corpus": "pubmedqa"}},
            "\"hook_audit.adaptive.corpus\" is 'pubmedqa'; it should be 'email' or 'business'",
        ),
        (
            {"modes": ["targeted"]},
            "\"hook_audit.modes.0\" is 'targeted'; it should be 'in_domain_queries' or 'targeted_queries'",
        ),
    ],
)
def test_an_unknown_name_is_named_with_its_key_and_the_nearest(section, message):
    assert fault(**section) == message


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"k": 5, "indexed": 4}, '"hook_audit": k is 5 and indexed is 4; k documents are taken from them'),
        (
            {"corpora": ["pubmedqa"]},
            '"hook_audit": corpora names pubmedqa, and pubmedqa is null; give the path of its "ori_pqal.json"',
        ),
        ({"defenses": [["pad"]]}, '"hook_audit": defenses lacks [none]; every effect is measured against it'),
        (
            {"canaries": {"defenses": [["pad"]]}},
            '"hook_audit.canaries": defenses lacks [none]; what is certified is measured against it',
        ),
        (
            {"membership": {"members": 50}, "indexed": 20},
            '"hook_audit": membership.members is 50 and indexed is 20; raise indexed',
        ),
        (
            {"membership": {"non_members": 50}, "held_out": 20},
            '"hook_audit": membership.non_members is 50 and held_out is 20; raise held_out',
        ),
        (
            {"epsilons": [0.0]},
            '"hook_audit": in epsilons, 0 is not above 0 and finite; no noise could be drawn for it',
        ),
        (
            {"defense_options": {"dp_r": {"epsilon": 3}}},
            '"hook_audit": defense_options.dp_r has epsilon, which names arms; put it into epsilons',
        ),
        ({"seeds": [-1]}, '"hook_audit.seeds.0" is -1; it should be greater than or equal to 0'),
        (
            {"canaries": {"seeds": []}},
            '"hook_audit.canaries": seeds is empty, and classes is not; name seeds, or leave classes empty for no '
            "canaries",
        ),
        ({"attacks": []}, '"hook_audit.attacks" is []; it needs at least 1 entry'),
        ({"budget": 0}, '"hook_audit.budget" is 0; it should be greater than or equal to 1'),
        (
            {"min_words": 40, "max_words": 45},
            '"hook_audit": max_words must be at least min_words + 10, or no document fits',
        ),
        (
            {"canaries": {"attack": "mi"}},
            '"hook_audit.canaries.attack": "mi" asks whether a document is indexed and recovers no item; '
            "name another attack",
        ),
    ],
)
def test_what_cannot_be_run_or_compared_is_refused_with_what_would_be_right(section, message):
    assert fault(**section) == message


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"seeds": [1, 1]}, '"hook_audit": in seeds, 1 stands twice'),
        ({"attacks": ["ps", "ps"]}, '"hook_audit": in attacks, ps stands twice'),
        ({"epsilons": [1, 1.0]}, '"hook_audit": in epsilons, 1.0 stands twice'),
        ({"epsilons": [1, 1.0000001]}, '"hook_audit": in epsilons, as arms are named, 1 stands twice'),
        ({"canaries": {"seeds": [2, 2]}}, '"hook_audit.canaries": in seeds, 2 stands twice'),
        ({"defenses": [["none"], ["none"]]}, '"hook_audit.defenses": the combination [none] stands twice'),
        (
            {"defenses": [["none"], ["pad", "pad"]]},
            '"hook_audit.defenses": in the combination [pad, pad] the defense pad stands twice',
        ),
        (
            {"defenses": [["none"], ["none", "pad"]]},
            '"hook_audit.defenses": [none, pad] combines none with a defense; leave none out',
        ),
    ],
)
def test_what_stands_twice_would_be_two_cells_of_one_name(section, message):
    assert fault(**section) == message


@pytest.mark.parametrize(
    ("adaptive", "message"),
    [
        (
            {"development_seeds": [1, 2], "check_seeds": [2]},
            "seed 2 stands in development_seeds and in check_seeds; they must differ",
        ),
        ({"development_seeds": [1]}, "development_seeds needs at least 2, or a choice is a draw"),
        ({"development_seeds": [1, 1]}, "in development_seeds, 1 stands twice"),
        (
            {"check_seeds": []},
            "check_seeds is empty; what was chosen has to be measured on at least one other seed",
        ),
        (
            {"fixed_attack": "denoise"},
            'fixed_attack "denoise" stands among probes; the lift would be against itself',
        ),
    ],
)
def test_an_adaptive_contest_that_could_not_be_judged_is_refused_before_it_is_run(adaptive, message):
    assert fault(adaptive=adaptive) == f'"hook_audit.adaptive": {message}'


def test_without_probes_the_seeds_of_the_contest_are_free():
    adaptive = load_settings({"hook_audit": {"adaptive": {"probes": [], "check_seeds": []}}}).hook_audit.adaptive
    assert adaptive.probes == ()
