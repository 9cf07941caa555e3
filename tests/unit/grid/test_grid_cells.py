"""The plan of the grid: how many cells, which stand for one another, and who runs them."""

from collections import Counter

from mragaudit.config import load_settings
from mragaudit.grid.cells import arms_by_name, cells_to_run, deal_cells, plan_cells

CASE_STUDY = {
    "corpora": ["email", "business", "pubmedqa"],
    "pubmedqa": "ori_pqal.json",
    "modes": ["in_domain_queries", "targeted_queries"],
    "defenses": [["none"], ["dp_r"], ["ca_dp"], ["private_rag"], ["pad"], ["lprag"]],
    "epsilons": [1.0, 5.0],
    "benign_questions": 0,
}


def planned(**changes):
    return plan_cells(load_settings({"hook_audit": {**CASE_STUDY, **changes}}).hook_audit)


def of_grid(cells):
    return [cell for cell in cells if cell.purpose == "grid"]


def test_the_case_study_has_432_cells_a_seed():
    assert len(of_grid(planned())) == 432  # 6 attacks x 6 defenses x 3 corpora x 2 modes x 2 epsilons
    assert len(of_grid(planned(seeds=[1, 2]))) == 864


def test_without_noise_the_epsilons_are_one_cell():
    run = cells_to_run(of_grid(planned()))
    assert len(run) == 324  # none, pad and lprag draw no noise: 6 x 3 x 2 x (3 x 2 + 3)
    assert {cell.arm for cell in run} == {
        *("none", "pad", "lprag", "dp_r@1", "dp_r@5", "ca_dp@1", "ca_dp@5", "private_rag@1", "private_rag@5")
    }


def test_a_repeated_cell_names_the_one_that_is_run_for_it():
    repeated = next(cell for cell in planned() if "lprag@5.ps" in cell.cell_id)
    assert repeated.same_as == repeated.cell_id.replace("lprag@5", "lprag")


def test_a_combination_draws_noise_when_a_part_does():
    arms = arms_by_name(load_settings({"hook_audit": {"defenses": [["none"], ["dp_r", "lprag"]]}}).hook_audit)
    assert {"dp_r+lprag@1", "dp_r+lprag@5"} <= arms.keys()
    assert arms["dp_r+lprag@5"].defenses == ("dp_r", "lprag")
    assert arms["dp_r+lprag@5"].epsilon == 5.0


def test_ids_of_cells_are_unique():
    names = [cell.cell_id for cell in planned(seeds=[1, 2, 3])]
    assert len(set(names)) == len(names)


def test_membership_inference_has_a_budget_of_every_question_to_every_candidate():
    cells = planned(membership={"members": 10, "non_members": 100, "questions": 3}, indexed=50, held_out=100)
    assert {cell.budget for cell in cells if cell.attack == "mi"} == {330}


def test_canaries_have_a_realisation_a_class_and_seed():
    cells = planned(canaries={"classes": ["email", "phone"], "seeds": [1, 2], "defenses": [["none"], ["pad"]]})
    found = {cell.realisation for cell in cells if cell.purpose == "canary"}
    assert found == {f"email.canary-{kind}.s{seed}" for kind in ("email", "phone") for seed in (1, 2)}


def test_both_controls_run_every_extraction_attack():
    cells = planned()
    for purpose in ("positive_control", "negative_control"):
        assert {cell.attack for cell in cells if cell.purpose == purpose} == {"ps", "pm", "ikea", "deal", "rag_thief"}


def test_without_probes_nothing_adaptive_is_run():
    assert not [cell for cell in planned(adaptive={"probes": []}) if cell.purpose == "adaptive"]


def test_all_arms_of_an_attack_share_a_shard():
    cells = cells_to_run(planned())
    dealt = deal_cells(cells, n_shards=4)
    shards = {}
    for cell in cells:
        shards.setdefault((cell.purpose, cell.realisation, cell.mode, cell.attack), set()).add(dealt[cell.cell_id])
    assert all(len(found) == 1 for found in shards.values())


def test_shards_make_about_as_many_target_calls_each():
    cells = cells_to_run(planned(seeds=[1, 2]))
    dealt = deal_cells(cells, n_shards=4)
    loads = Counter()
    for cell in cells:
        loads[dealt[cell.cell_id]] += cell.budget
    assert sorted(loads) == ["1-of-4", "2-of-4", "3-of-4", "4-of-4"]
    assert max(loads.values()) - min(loads.values()) <= 0.1 * max(loads.values())


def test_the_order_of_cells_decides_nothing_about_their_shards():
    cells = cells_to_run(planned())
    assert deal_cells(reversed(cells), n_shards=3) == deal_cells(cells, n_shards=3)


def test_a_grid_of_membership_alone_has_controls_as_well():
    cells = plan_cells(load_settings({"hook_audit": {"attacks": ["mi"]}}).hook_audit)
    assert {cell.attack for cell in cells if cell.purpose == "positive_control"} == {"ps"}


def test_controls_are_run_on_a_corpus_with_items_where_there_is_one():
    def corpora(*names):
        return {cell.corpus for cell in planned(corpora=names) if cell.purpose.endswith("_control")}

    assert corpora("pubmedqa", "business", "email") == {"business"}
    assert corpora("pubmedqa") == {"pubmedqa"}
