// Package fleet models inference engines and hosted providers under virtual
// time: how long a request waits, when its tokens come, how much key-value
// memory it holds.
//
// # A replica
//
// A [Replica] is one engine with continuous batching. Time is cut into steps.
// At each step boundary the head of a FIFO queue is admitted while a slot is
// free and its memory is there. A step then takes at most ChunkTokens of prefill
// from the oldest running jobs, first come first served, and one token of each
// job that decodes. It lasts
//
//	t = StepBase + n·StepPerJob + ctx·StepPerToken     with n decoding jobs, ctx their context tokens
//	  + chunk / PrefillRate + pairs·PrefillPerPair     if it carries prefill
//
// where pairs counts each token of the chunk with those at or before it: a prompt
// of p tokens behind c cached ones has p·c + p(p+1)/2. A step of prefill alone has
// the second line only. The first token of a job comes at the end of the step that
// ends its prefill. Hence, for a steady load of λ requests/s of p input (h of it
// cached) and o output tokens: prefill demand λ·p·(1−h) against PrefillRate,
// decode demand λ·o against n/t, memory by Little's law
//
//	KV = λ·[T_prefill·p + o·t·(p + o/2)]
//
// A run of k steps of pure decode with constant membership is one closed form,
//
//	T(k) = k·(StepBase + n·StepPerJob) + StepPerToken·(k·ctx + n·k(k−1)/2)
//
// so [Replica.Advance] has no event per token: it stops where a job comes, gets
// its first token, reaches an expectation, or ends, and each such stop costs one
// pass over the batch, 4 to 9 µs for a whole request (BenchmarkReplica). All
// arithmetic is on integers; fractions of a nanosecond are carried, so the result
// does not depend on how often Advance is called.
//
// # Memory
//
// By default the whole context is reserved at admission, as the published fit of
// [Llama7BOnA10G] has it:
//
//	admit ⇔ running < Slots ∧ reserved + input + output ≤ KVCapacity
//
// A [Profile.Paged] replica gives memory as contexts grow, as vLLM does: a job is
// admitted when its prompt fits beside the growth of the next step and a watermark
// of 1 %; when the next step has no room, the jobs admitted last lose theirs and
// go back to the head of the queue, keeping their tokens, to be prefilled again
// with them.
//
// With [Profile.BlockTokens] a replica has a prefix cache. A job names its context
// by the chained hashes of its blocks ([Job.Blocks]). A block is shared once it is
// computed; running jobs hold it by reference, counted once however many they are;
// without a reference it stays in what memory is left, the one used longest ago
// first to go, and a block never before those that continue it. An admission finds
// its longest prefix, of which at least the last token is computed again, for its
// logits. Blocks may go on into the output, for the next turn of a conversation.
// Jobs without blocks, and replicas without a cache, take [Job.Cached] or
// HitPermille as told.
//
// # Outages
//
// Fail ends every job at once, as [Lost], with what it had generated, and empties
// the cache; Restart does the same and serves after StartUp. A change of speed
// holds from the next step of a replica, and for what is still to come of a
// provider's jobs. A cancelled job's step takes as long as it was going to.
//
// # A hosted provider
//
// A [Hosted] provider has no visible batch: each job takes Latency and an
// exponential part of mean LatencyTail, its uncached input at PrefillRate and then
// one TokenTime per token, unless the requests in flight or the requests and
// tokens per minute are used up, which it refuses with the time to wait: a 429.
// [Faults] refuse a share of the calls with 529, answer a share with a 5xx in
// place of the first token, and break a share of the streams. What is drawn
// depends on the seed and the number of the call alone.
//
// # Profiles
//
// [Derive] makes a profile of a model and GPUs. With L layers, hidden width d,
// inner width f, q = heads·head_dim, P parameters of which A multiply each token
// of a prompt (no embeddings, no idle experts), W bytes of weights, b bytes a
// number, TP GPUs of F FLOP/s, bandwidth BW and link bandwidth N:
//
//	KV bytes per token  kv = 2·L·kv_heads·head_dim·b
//	memory              (0.9·mem·TP − W − 3 GiB·TP) / kv
//	prefill per token   2A / (e·F·TP)                    the linear layers
//	                    + 2L·(8d + (3f + 4q)/TP) / BW    norms, activation, positions
//	                    + 8L·d·(TP−1)/TP / N             sums between the GPUs
//	prefill per pair    4L·q / (e·F₁₆·TP)
//	step                126 µs + L·32 µs + 1.4·W/(BW·TP)
//	step per job        4.4 µs + the sums between the GPUs
//	step per token      1.95·kv / (BW·TP)
//
// The constants of the step are from the fits of the simulator BLIS
// (inference-sim); 1.95 is the careful end of a measured range that begins at 1.3.
// The quadratic term is that of Mooncake (FAST'25). e is the one figure that is
// fitted, for each GPU type, on every other measured row; derive_test.go has the
// rows: llm-d's prefill throughput of Qwen3-32B (vLLM, SGLang) and Qwen3-VL-32B,
// TensorRT-LLM 1.0's requests of 2,048 in and 128 out, and Vidur's profiles of the
// linear layers. All rows that it covers, held out or not, are met: prefill within
// 10 %, and within 9.3 %; memory within 5 %, and within 2.6 %, of one row.
//
// It does not cover: mixtures of experts, whose prefill comes out 43 % too fast on
// gpt-oss-120b, since routing and uneven experts cost more than their arithmetic,
// and whose small batches come out too slow, since all experts are taken as read;
// decode on several GPUs, which wait for each other in every layer, so that
// TensorRT-LLM's decode-bound rows come out 14 % too fast on two and 70 % on eight
// (one GPU: within 1 %, at 1.3); a time to first token under load, such as llm-d's
// 4.3 s for 10,000 tokens, which is a queue and not an engine; TPUs and CPUs. Of
// A100 only linear layers were measured; the rest of its prefill is the model's.
//
// [Profiles] names illustrative ones. A seed has a published estimate's figures:
// prefill at about half the peak over all parameters, with the quadratic part
// inside and no sums between GPUs. Its memory and step agree with Derive within
// 1 %; its prefill is up to 30 % lower, most of all where the embeddings are a
// large part of the model (8B). The difference is on the careful side, and a
// measurement decides: [Plan], [Measure] and [Fit] take a live backend's profile.
//
// # Invariants
//
// Every job submitted is waiting, running, or has ended once, as done, cancelled
// or failed. Used ≤ reserved, and reserved + cached ≤ KVCapacity. Jobs start in
// the order of submission, those that were preempted first. The clock never goes
// back, and no token comes before its prefill can have ended. Of jobs that are all
// done, input = prefilled − recomputed + cache hits. Same calls, same answers,
// whatever the granularity of Advance.
//
// # Ownership and concurrency
//
// Both types are plain values behind pointers with no lock, no goroutine and no
// clock: the caller serialises calls and passes a `now` that never goes back
// (one that does counts as the latest seen).
//
// # What it does not do
//
// Memory is counted in tokens, not in an engine's pages, so that the last page of
// each job, half empty on average, is not missed. A request waits for no image or
// adapter. Speculative decoding, prefill and decode on separate replicas, memory
// in the host's RAM and priorities inside the engine are left out. A start-up
// time is an assumption wherever it is not told. The latency between GPUs of a
// decode step is left out, as above. A provider is not slowed by its own load.
package fleet
