/* Random graphs divided between the host and a device of the tests, beside all there is: the turns
 * of the order beside the fewest of any order, the cost of a division beside the least of any. */
#include "divided.h"
#include "test.h"

enum { MOST = 9 };

static uint64_t drawn;

static int draw(int below)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (int)((drawn >> 33) % (uint64_t)below);
}

/* "Add x d1 -> c2; ...": values 0 is x, k that of node k. All that nobody reads are outputs. */
static void write_graph(int nodes, char *text, size_t size)
{
    bool is_far[MOST + 1] = {false}, is_read[MOST + 1] = {false};
    char name[2][8];
    size_t used = 0;
    for (int k = 1; k <= nodes; k++) {
        int in[2] = {draw(k), draw(k)};
        bool two = draw(2);
        is_far[k] = draw(2);
        for (int i = 0; i < 1 + two; i++) {
            is_read[in[i]] = true;
            snprintf(name[i], sizeof name[i], in[i] ? "%c%d" : "x", is_far[in[i]] ? 'd' : 'c',
                     in[i]);
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s %s %s%s-> %c%d",
                                 k > 1 ? "; " : "", two ? "Add" : draw(2) ? "Neg" : "Abs", name[0],
                                 two ? name[1] : "", two ? " " : "", is_far[k] ? 'd' : 'c', k);
    }
    used += (size_t)snprintf(text + used, size - used, " =>");
    for (int k = 1; k <= nodes; k++)
        if (!is_read[k] || !draw(5))
            used += (size_t)snprintf(text + used, size - used, " %c%d", is_far[k] ? 'd' : 'c', k);
}

typedef struct drawn_graph { /* as the session has it, nodes by their place in the order */
    int count;
    const ort_node *nodes[MOST];
    unsigned needs[MOST]; /* bits of nodes that must run before */
    int owner[MOST];
} drawn_graph;

static void read_graph(const ort_session *s, drawn_graph *g)
{
    const ort_graph *graph = s->model->graph;
    const ort_node *node;
    memset(g, 0, sizeof *g);
    ORT_EACH_NODE(graph, node)
    {
        g->nodes[g->count] = node;
        g->owner[g->count] = ort_partition_owner(&s->partition, node);
        for (int i = 0; i < node->input_count; i++)
            for (int k = 0; k < g->count; k++)
                if (g->nodes[k]->outputs[0] == node->inputs[i])
                    g->needs[g->count] |= 1u << k;
        g->count++;
    }
}

/* Over all orders: by what has run, and who ran last. */
static int fewest_turns(const drawn_graph *g)
{
    static int least[1 << MOST][2];
    int all = (1 << g->count) - 1;
    for (int done = 0; done <= all; done++)
        least[done][0] = least[done][1] = done ? 1000 : 0;
    for (int done = 0; done < all; done++)
        for (int last = 0; last < 2; last++)
            for (int k = 0; k < g->count; k++) {
                if ((done >> k & 1) || (g->needs[k] & ~(unsigned)done))
                    continue;
                int *to = &least[done | 1 << k][g->owner[k]];
                int turns = least[done][last] + (!done || last != g->owner[k]);
                *to = turns < *to ? turns : *to;
            }
    return least[all][0] < least[all][1] ? least[all][0] : least[all][1];
}

static void turns(test_state *test)
{
    for (int round = 0; round < 300; round++) {
        net n;
        char text[600];
        ort_error err = {0};
        ort_tally tally;
        drawn_graph g;
        drawn = (uint64_t)round + 1;
        write_graph(2 + draw(MOST - 1), text, sizeof text);
        CHECK(net_init(&n, NULL));
        build(&n, text);
        ort_session *both = session_of(&n, "far:cost=off,cpu", false, &err);
        ort_session *host = session_of(&n, NULL, false, &err);
        snprintf(test->why, sizeof test->why, "%.190s", text);
        CHECK(both && host && same_results(both, host, 2, &err));
        CHECK(ort_partition_tally(&both->partition, both->model->graph, &tally, &err) == ORT_OK);
        read_graph(both, &g);
        CHECK(tally.turns == fewest_turns(&g));
        ort_session_free(both);
        ort_session_free(host);
        net_free(&n);
    }
}

/* ---- by cost: nodes of the device 0.1 us, of the host 0.6, a copy 1 */

static double host_cost(void *device, const ort_node_work *work)
{
    return 0.6e-6;
}

static int64_t cost_of(const ort_session *s, const drawn_graph *g, unsigned far_nodes)
{
    const ort_graph *graph = s->model->graph;
    int64_t cost = 0;
    for (size_t id = 0; id < graph->values.count; id++) {
        int home = 0, readers[2] = {0};
        for (int k = 0; k < g->count; k++) {
            bool is_far = far_nodes >> k & 1;
            if (g->nodes[k]->outputs[0] == id)
                home = is_far;
            for (int i = 0; i < g->nodes[k]->input_count; i++)
                readers[is_far] += g->nodes[k]->inputs[i] == id;
        }
        for (size_t o = 0; o < graph->outputs.count; o++)
            readers[0] += graph->outputs.data[o] == id;
        cost += ort_partition_moves(graph, (ort_id)id) && readers[!home] ? 1000000 : 0;
    }
    for (int k = 0; k < g->count; k++)
        cost += far_nodes >> k & 1 ? 100000 : 600000;
    return cost;
}

static void costs(test_state *test)
{
    ort_provider host = *ort_provider_at(0);
    const ort_provider *const table[] = {&host, &far_provider, NULL};
    host.cost = host_cost;
    for (int round = 0; round < 200; round++) {
        net n;
        char text[600];
        ort_error err = {0};
        drawn_graph g;
        ort_session_options options;
        unsigned claimed = 0, given = 0;
        int64_t least = INT64_MAX;
        drawn = (uint64_t)round + 1000;
        write_graph(2 + draw(MOST - 1), text, sizeof text);
        CHECK(net_init(&n, NULL));
        build(&n, text);
        ort_session_options_init(&options);
        options.level = 0;
        options.providers = "far,cpu";
        n.env->providers = table;
        ort_session *both = net_session(&n, &options, &err);
        snprintf(test->why, sizeof test->why, "%.190s", text);
        CHECK(both);
        read_graph(both, &g);
        for (int k = 0; k < g.count; k++) {
            claimed |= (unsigned)(g.nodes[k]->name[0] == 'd') << k;
            given |= (unsigned)(g.owner[k] == 0) << k;
        }
        for (unsigned some = 0; some < 1u << g.count; some++)
            if (!(some & ~claimed) && cost_of(both, &g, some) < least)
                least = cost_of(both, &g, some);
        CHECK(!(given & ~claimed) && cost_of(both, &g, given) == least);
        ort_session_free(both);
        net_free(&n);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, turns);
    RUN(&test, costs);
    return test.failures != 0;
}
