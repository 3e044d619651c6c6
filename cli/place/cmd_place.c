/* cmd_place.c: edge or cloud, by the numbers given. */
#include "place_job.h"

static const cli_option options[] = {
    {"--edge-profile", "FILE", "of this device, by `nori profile`: the options below go before it"},
    {"--cloud-profile", "FILE", "of a server from here, or of the server itself; may be repeated"},
    {"--edge", "TIMES", "of a call on the device: 55ms, exp:10ms, or p50=5ms,p99=40ms"},
    {"--cloud", "TIMES", "of a call on a server, computing alone"},
    {"--up", "TIMES", "the input's way there, where bytes and speed are not told"},
    {"--down", "TIMES", "the result's way back"},
    {"--up-bytes", "SIZE", "of the input, as 150kB (default: the model's)"},
    {"--down-bytes", "SIZE", "of the result (default: the model's)"},
    {"--speed", "SPEED", "of the link both ways: 5MB/s or 40Mbit/s"},
    {"--up-speed", "SPEED", "of the way there"},
    {"--down-speed", "SPEED", "of the way back"},
    {"--rtt", "TIMES", "round trip of the link"},
    {"--queue", "TIMES", "wait before a server, as measured"},
    {"--edge-queue", "TIMES", "wait before the device, as measured"},
    {"--rate", "RATE", "calls of this device, as 30/s: queues are computed from it"},
    {"--cloud-rate", "RATE", "calls that the servers get in all (default: this device's)"},
    {"--edge-servers", "N", "calls the device works on at once (default 1)"},
    {"--cloud-servers", "N", "calls the servers work on at once (default 1)"},
    {"--deadline", "TIME", "a call must be done by then"},
    {"--percentile", "P", "of calls that must keep the deadline (default 99)"},
    {"--offline", NULL, "there is no network"},
    {"--raw-stays", NULL, "the input may not leave the device"},
    {"--features-stay", NULL, "nothing computed from it may either"},
    {"--model-bytes", "SIZE", "against the memories (default: the model's)"},
    {"--activation-bytes", "SIZE", "of one call (default: the model's)"},
    {"--edge-memory", "SIZE", "that the device has for it"},
    {"--cloud-memory", "SIZE", "that a server has for it"},
    {"--edge-energy", "ENERGY", "of the device, computing a call: 80mJ"},
    {"--cloud-energy", "ENERGY", "of the device, sending a call and waiting"},
    {"--max-energy", "ENERGY", "of a call"},
    {"--edge-price", "X", "of 1,000 calls"},
    {"--cloud-price", "X", "of 1,000 calls"},
    {"--max-price", "X", "of 1,000 calls"},
    {"--edge-disagrees", NULL, "its results were validated and do not agree"},
    {"--cloud-disagrees", NULL, "its results were validated and do not agree"},
    {"--byte-features", NULL, "a split sends floats in 8 bits"},
    {"--sweep", "WHAT=A..B", "bandwidth, payload, rtt or rate through a range: rtt=1ms..200ms"},
    {"--steps", "N", "of the sweep (default 11)"},
    {"--replay", "FILE", "calls of the past as CSV: who would have done how well, an oracle among them"},
    {"--late-cost", "TIME", "of a call beyond the deadline, in a replay (default: ten deadlines)"},
    {"--switch-cost", "TIME", "of another place than for the call before, in a replay (default 0s)"},
    {"--lost", "TIME", "waited in vain where there was no network, in a replay (default 1s)"},
    {"--policy", "FILE", "decisions over speeds and round trips, as CSV"},
    {"--header", "FILE", "write the decision as a C header for the device"},
    {"--html", "FILE", "write a page with pictures, readable without a network"},
    CLI_INPUT_OPTIONS,
    CLI_SESSION_OPTIONS,
    CLI_LOAD_OPTIONS,
    CLI_QUIET_OPTION,
    CLI_COMMON_OPTIONS,
};

static int run(cli_args *args)
{
    static place_job j;
    nori_error err = {0};
    j = (place_job){.args = args, .answer = {.size = sizeof(j.answer)}};
    if (args->count > 1) {
        return cli_usage(args, "at most one model was expected");
    }
    int code = place_read(&j);
    if (code == EXIT_YES && nori_place_decide(&j.question, &j.answer, &err) != NORI_OK) {
        code = cli_fail(args, &err);
    }
    code = code == EXIT_YES ? place_replay(&j) : code;
    code = code == EXIT_YES ? place_policy(&j) : code;
    code = code == EXIT_YES ? place_page(&j) : code;
    code = code == EXIT_YES ? place_header(&j) : code;
    code = code == EXIT_YES ? place_print(&j) : code;
    place_free(&j);
    return code;
}

const cli_verb cli_place = {
    "place", "place", "[MODEL] --edge TIMES --cloud TIMES | --edge-profile FILE --cloud-profile FILE",
    "edge or cloud: which is faster, by the numbers given, and where that turns", options, run,
    "  nori place --edge 55ms --cloud 8ms --up 30ms --down 12ms --queue 20ms\n"
    "  nori place model.onnx --edge 50ms --cloud 8ms --speed 5MB/s --rtt 20ms\n"
    "  nori place --edge exp:10ms --cloud exp:10ms --cloud-servers 8 --rtt 15ms --rate 40/s\n"
    "  nori place model.onnx --edge-profile edge.json --cloud-profile cloud.json --html place.html\n"
  "  nori place --replay trace.csv --deadline 100ms --speed 5MB/s --up-bytes 150kB\n"
  "  nori place --edge 60ms --cloud p50=5ms,p99=400ms --deadline 100ms\n"};
