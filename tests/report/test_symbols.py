from driftbandits.report.symbols import html_of


def test_symbols_are_formulas_and_the_rest_is_escaped():
    assert html_of("sqrt(gamma_T T log N) < L_T") == "√(γ<sub>T</sub> T log N) &lt; L<sub>T</sub>"
    assert html_of("d^(2/3) V_T^(1/3)") == "d<sup>2/3</sup> V<sub>T</sub><sup>1/3</sup>"


def test_what_only_looks_like_a_symbol_stays():
    for text in ("XL_T", "L_TAB", "my_sqrt", "x^2"):
        assert html_of(text) == text
