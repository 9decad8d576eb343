"""What is counted in a process."""

from service.process_statistics import ProcessStatistics


def test_a_model_that_is_loaded_anew_goes_on_counting() -> None:
    """Counters never go back while the process lives."""
    statistics = ProcessStatistics()
    statistics.of_model("a").note_failure()
    statistics.of_model("a").note_failure()
    statistics.of_model("b").note_failure()
    assert [(name, one.failures) for name, one in statistics.batches] == [("a", 2), ("b", 1)]
