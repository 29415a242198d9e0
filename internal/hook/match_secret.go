package hook

// shape is a well-known form of credential: a prefix, then at least so many bytes of
// an alphabet. What follows in the alphabet belongs to it.
type shape struct {
	prefix string
	of     *class
	least  int
	mixed  bool // of those at least one is a capital or a digit: the prefix may begin a word
}

// shapes are sorted by nothing: the first that matches counts, so a longer prefix
// stands before a shorter one.
var shapes = []shape{
	{"sk_live_", &alnum, 16, false}, // Stripe
	{"sk_test_", &alnum, 16, false},
	{"rk_live_", &alnum, 16, false},
	{"rk_test_", &alnum, 16, false},
	{"whsec_", &alnum, 24, false},
	{"sk-", &base64url, 20, true}, // OpenAI, Anthropic, DeepSeek, OpenRouter and others
	{"slk_", &base64url, 20, false},
	{"gsk_", &alnum, 30, false}, // Groq
	{"xai-", &alnum, 30, false},
	{"hf_", &alnum, 30, false}, // Hugging Face
	{"r8_", &alnum, 30, false}, // Replicate
	{"AKIA", &upperNum, 16, false},
	{"ASIA", &upperNum, 16, false},
	{"ABSK", &base64all, 40, true}, // Bedrock
	{"AIza", &base64url, 35, false},
	{"ya29.", &base64url, 20, false},
	{"ghp_", &alnum, 36, false},
	{"gho_", &alnum, 36, false},
	{"ghu_", &alnum, 36, false},
	{"ghs_", &alnum, 36, false},
	{"ghr_", &alnum, 36, false},
	{"github_pat_", &wordy, 40, false},
	{"glpat-", &base64url, 20, false},
	{"xoxb-", &dashed, 20, false}, // Slack
	{"xoxp-", &dashed, 20, false},
	{"xoxa-", &dashed, 20, false},
	{"xoxr-", &dashed, 20, false},
	{"xoxs-", &dashed, 20, false},
	{"xapp-", &dashed, 20, false},
	{"npm_", &alnum, 36, false},
	{"pypi-", &base64url, 50, false},
	{"SG.", &jwtTail, 40, true}, // SendGrid
	{"dop_v1_", &hexes, 64, false},
	{"dapi", &hexes, 32, false}, // Databricks
	{"shpat_", &hexes, 32, false},
	{"AGE-SECRET-KEY-1", &upperNum, 50, false},
}

var (
	dashed    = classOf("azAZ09", "-")
	base64all = classOf("azAZ09", "+/=")
)

// shapesBy are the shapes by the first byte of their prefix.
var shapesBy = func() (by [256][]*shape) {
	for i := range shapes {
		first := shapes[i].prefix[0]
		by[first] = append(by[first], &shapes[i])
	}
	return by
}()

func matchSecret(s []byte, i int, final bool) (int, *class, found) {
	if before(s, i, &wordy) {
		return 0, nil, no
	}
	for _, sh := range shapesBy[s[i]] {
		switch n, r := sh.at(s, i, final); r {
		case yes:
			return n, sh.of, yes
		case more:
			return 0, nil, more
		}
	}
	return 0, nil, no
}

func (sh *shape) at(s []byte, i int, final bool) (n int, r found) {
	if r := literal(s, i, sh.prefix, final); r != yes {
		return 0, r
	}
	from := i + len(sh.prefix)
	j := run(s, from, sh.of, sh.least)
	switch {
	case j < from+sh.least && j == len(s):
		return 0, open(final)
	case j < from+sh.least:
		return 0, no
	}
	if sh.mixed {
		capital := false
		for _, c := range s[from:j] {
			capital = capital || upperNum[c]
		}
		if !capital {
			return 0, no
		}
	}
	return j - i, yes
}
