/* test_budget.c - budgets within budgets: what stops the outer work stops the inner one. */
#include "base/budget.h"
#include "base/findings.h"
#include "test.h"

static void every_token_around_work_stops_it(test_state *test)
{
    ort_cancel outer = {0}, inner = {0};
    ort_budget a, b;
    ort_error err = {0};
    ort_budget_begin(&a, NULL, 0, &outer);
    ort_budget_begin(&b, NULL, 0, &inner); /* of its own: a run that loads something on the way */
    CHECK(ort_budget_check(&err) == ORT_OK);
    ort_cancel_set(&outer);
    CHECK(ort_budget_check(&err) == ORT_ERROR_CANCELLED);
    CHECK(ort_budget_end(&b, ORT_ERROR_RUN, &err) == ORT_ERROR_CANCELLED);
    CHECK(ort_budget_end(&a, ORT_OK, &err) == ORT_OK); /* it was done before anybody looked */
    CHECK(ort_budget_current() == NULL);
}

static void an_inner_token_stops_inner_work_alone(test_state *test)
{
    ort_cancel inner = {0};
    ort_budget a, b;
    ort_budget_begin(&a, NULL, 0, NULL);
    ort_budget_begin(&b, NULL, 0, &inner);
    ort_cancel_set(&inner);
    CHECK(ort_budget_over(&b));
    CHECK(ort_budget_end(&b, ORT_ERROR_RUN, NULL) == ORT_ERROR_CANCELLED);
    CHECK(ort_budget_check(NULL) == ORT_OK);
    CHECK(ort_budget_end(&a, ORT_OK, NULL) == ORT_OK);
}

static void a_finding_is_told_once(test_state *test)
{
    ort_findings *findings = NULL;
    CHECK(ort_findings_new(&findings, NULL) == ORT_OK);
    ort_findings_add(findings, ORT_FINDING_WARNING, "a %d", 1);
    ort_findings_add_once(findings, ORT_FINDING_ERROR, "a 1");
    ort_findings_add_once(findings, ORT_FINDING_ERROR, "b");
    ort_findings_add(findings, ORT_FINDING_ERROR, "c");
    ort_findings_add_once(findings, ORT_FINDING_ERROR, "c");
    ort_findings_add_once(findings, ORT_FINDING_ERROR, "b");
    CHECK(ort_findings_count(findings) == 3 && ort_findings_errors(findings) == 2);
    ort_findings_free(findings);
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, every_token_around_work_stops_it);
    RUN(&test, an_inner_token_stops_inner_work_alone);
    RUN(&test, a_finding_is_told_once);
    return test.failures != 0;
}
