"""ops_text.py: strings."""
from draw import FLOAT, INT32, INT64, STRING, Skip, entry, product


@entry("StringConcat", opset=20)
def concat(d):
    for s in d.broadcast(2):
        d.input(STRING, s)


@entry("StringSplit", opset=20)
def split(d):
    s = d.shape(0)
    texts = ["a b c", " a  b ", "", "a,b,,c", ",", "x::y::z", "  ", "one"]
    d.input(STRING, s, [d.pick(texts) for _ in range(product(s))])
    d.maybe("delimiter", d.pick(" ", ",", "::", ""))
    d.maybe("maxsplit", d.int(1, 3), 0.4)
    d.outputs = 2


@entry("RegexFullMatch", opset=20)
def regex(d):
    s = d.shape(0)
    texts = ["abc", "a1", "www.x.com", "", "AAA", "a-b"]
    d.input(STRING, s, [d.pick(texts) for _ in range(product(s))])
    d.attr("pattern", d.pick("[a-z]+", "a.", r"www[\w.-]+\bcom\b", "A*", ".*", "(a|b|-)+"))


@entry("StringNormalizer", opset=10)
def normalizer(d):
    n = d.dim(1)
    words = ["Monday", "tuesday", "THE", "the", "a", "Zebra"]
    s = d.pick([n], [1, n])
    d.input(STRING, s, [d.pick(words) for _ in range(n)])
    d.maybe("case_change_action", d.pick("LOWER", "UPPER", "NONE"))
    d.maybe("is_case_sensitive", d.int(0, 1))
    if d.chance(0.6):
        d.attr("stopwords", d.rng.sample(words, d.int(1, 3)))


@entry("TfIdfVectorizer", opset=9, weight=2)
def tf_idf(d):
    text = d.chance(0.4)
    low = d.int(1, 2)
    high = d.int(low, 3)
    skip = d.int(0, 2)
    d.attr("mode", d.pick("TF", "IDF", "TFIDF"))
    d.attr("min_gram_length", low)
    d.attr("max_gram_length", high)
    d.attr("max_skip_count", skip)
    pool, counts = [], []
    for n in range(1, 4):
        counts.append(len(pool))
        grams = set()
        while len(grams) < (2 if n < high + 1 else 1):
            grams.add(tuple(d.int(0, 3) for _ in range(n)))
        if n <= high:
            for g in sorted(grams):
                pool += g
    counts = counts[:high]
    total = 2 * high
    d.attr("ngram_counts", counts)
    d.attr("ngram_indexes", d.rng.sample(range(total), total))
    if text:
        d.attr("pool_strings", ["w%d" % v for v in pool])
    else:
        d.attr("pool_int64s", pool)
    d.maybe("weights", [round(d.uniform(0.2, 3), 2) for _ in range(total)], 0.5)
    s = d.pick([d.dim(1) + 2], [d.dim(1), d.dim(1) + 2])
    n = product(s)
    if text:
        d.input(STRING, s, ["w%d" % d.int(0, 4) for _ in range(n)])
    else:
        d.input(d.pick(INT32, INT64), s, [d.int(0, 4) for _ in range(n)])
    d.tolerance(1e-5, 1e-5)
