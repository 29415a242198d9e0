package faults

// rows are the table. What they say of client and ledger is what their tests
// assert.
var rows = []row{
	{
		"P1", "kill -9 while a request waits in a queue", "connection reset", "no entry for it; what ran is settled lost by the next start",
		[]string{here + "TestFault_P1_KilledWhileQueued"},
	},
	{
		"P2", "kill -9 after the dispatch, before the headers", "connection reset", "lost: the estimate, never zero",
		[]string{here + "TestFault_P2_KilledBeforeTheHeaders"},
	},
	{
		"P3", "kill -9 in mid-stream", "connection reset, no `[DONE]`", "lost: at least the last checkpoint, 2 s or 1,000 tokens old",
		[]string{here + "TestFault_P3_KilledInMidStream"},
	},
	{
		"P4", "kill -9 between the upstream's end and the store's commit", "its whole answer, or a reset", "one entry, as it really ended",
		[]string{here + "TestFault_P4_KilledBeforeTheCommit", "internal/ledger.TestKill"},
	},
	{
		"P5", "kill -9 during a commit, a checkpoint of the database, a migration", "–", "what was committed is there, the rest is not; the store opens whole and roll-ups are the sums of entries",
		[]string{here + "TestFault_P5_KilledDuringACommit", here + "TestFault_P5_KilledDuringAMigration", "internal/ledger.TestTornTailAtEveryByte"},
	},
	{
		"P6", "database locked for 10 s by another process", "nothing: all are served, hard spend too; degraded within 5 s, ready throughout", "kept in the journal, in the store within 5 s of the unlock, once",
		[]string{here + "TestFault_P6_DatabaseLocked", "internal/store.TestLockedDatabase"},
	},
	{
		"P7", "disk of the journal full", "hard spend: 503 `ledger_busy` with Retry-After; soft spend is served and streams in flight finish", "settlements take the ballast, then memory; all are in the store once space returns, without a restart",
		[]string{here + "TestFault_P7_DiskFull", here + "TestFault_P7_DiskFullBeyondTheBallast", "internal/ledger.TestDiskFull", "internal/ledger.TestBallastTakesSettlements"},
	},
	{
		"P7", "disk of the store full", "nothing", "kept in the journal, in the store once space returns, once",
		[]string{"internal/store.TestFault_P7_StoreFull", "internal/store.TestFault_P7_StoreFullWithBatches", "internal/jobs.TestFault_P7_StoreGoneAndFull"},
	},
	{
		"P8", "journal on a disk that is read-only, that does not sync, or at the start", "as P7; at the start it exits with the reason", "as P7",
		[]string{here + "TestFault_P8_ReadOnlyDisk", here + "TestFault_P8_DiskThatDoesNotSync", here + "TestFault_P8_NoPlaceForTheJournal", "internal/ledger.TestPartialWriteIsCutAway", "internal/ledger.TestFailedSyncIsWrittenAgain"},
	},
	{
		"P8", "store read-only", "nothing", "kept in the journal, in the store once it can be written, once",
		[]string{"internal/store.TestFault_P8_StoreReadOnly"},
	},
	{
		"P9", "damaged page of the database", "it does not start: exit 1 with the commands that restore or begin anew", "nothing is changed",
		[]string{here + "TestFault_P9_DamagedDatabase", "internal/store.TestDamagedDatabaseIsRefused"},
	},
	{
		"P9", "the database's or the journal's log cut short or damaged", "a cut end is mended; damage in the middle of the journal: exit 1 with the command", "as of the last commit that is whole",
		[]string{here + "TestFault_P9_CutLog", "internal/ledger.TestDamageInTheMiddleRefuses", "internal/ledger.TestMissingSegmentRefuses"},
	},
	{
		"P9", "store that went back: the database's log cut short after a crash, or a backup put in its place", "nothing; the loss is told at the start", "what the journal still holds, one segment at least, comes again, once",
		[]string{here + "TestFault_P9_StoreThatWentBack", "internal/ledger.TestRewind"},
	},
	{
		"P10", "two gateways on one data directory, or one store", "the second exits 5, names the process and says what to do; the first goes on", "–",
		[]string{here + "TestFault_P10_TwoGatewaysOnOneDirectory", "internal/store.TestSecondProcessIsRefused", "internal/ledger.TestSecondProcessIsRefused"},
	},
	{
		"P12", "panic in a handler or a hook", "500 `internal_error`, or cut with it; others are not disturbed", "settled by what was seen; the stack is logged once",
		[]string{bubbles + "TestFault_P12_Panic", bubbles + "TestSettlement"},
	},
	{
		"P13", "256 descriptors, 300 clients", "80 are let in, the others wait and are served; the operator is answered", "each once",
		[]string{here + "TestFault_P13_FewDescriptors", bubbles + "TestDoor"},
	},

	{
		"U1", "connection refused, no route", "elsewhere; 502 `upstream_connect`", "none",
		[]string{bubbles + "TestFault_U1_NoConnection", bubbles + "TestCO6BlackHole", "internal/upstream.TestConnectFailures"},
	},
	{
		"U2", "certificate expired or of another host, no TLS, handshake hangs", "elsewhere; 502 `upstream_tls`, of a hang after 5 s", "none",
		[]string{here + "TestFault_U2_TLS", "internal/upstream.TestTLSFailureIsNamed"},
	},
	{
		"U3", "name does not resolve, or flaps", "its last address stands in for 30 s; then elsewhere; 502 `upstream_connect`", "none",
		[]string{here + "TestFault_U3_NameDoesNotResolve", "internal/egress.TestLastGoodAddress"},
	},
	{
		"U4", "429 with Retry-After in seconds, as a date, 0, absurd", "elsewhere, with another credential of the same backend too; where there is nothing else, the request waits for as long as it asked if it may wait for so long, and those that come meanwhile do; else 503 `upstream_limited`, Retry-After 1 to 60 s; the credential is not used there for as long as it asked, at most 5 min", "none",
		[]string{bubbles + "TestFault_U4_Limited", bubbles + "TestFault_U4_PacesTheCredential", bubbles + "TestFault_U4_WaitsForThePause", "internal/wire.TestRetryAfter"},
	},
	{
		"U5", "429 without a time; account spent", "as U4 with Retry-After 1; the credential of a spent account is left alone until the time that it told, or for an hour", "none",
		[]string{bubbles + "TestFault_U5_LimitedWithoutATime", bubbles + "TestParkedBackend", bubbles + "TestFault_U8_DisablesTheCredential"},
	},
	{
		"U6", "500, 502, 503", "elsewhere; 502 or 503 `upstream_error`; after five in a row the backend cools down for 10 s; of a backend that answers nothing else, 100 requests with two retries are at most 110 calls", "none, or what it reported",
		[]string{bubbles + "TestFault_U6_ServerErrors", bubbles + "TestCase_cO1_OnlyRefusals", bubbles + "TestCO1RetriesAreBounded"},
	},
	{
		"U7", "529 overloaded", "elsewhere; 503 `upstream_limited`; no second attempt there", "none",
		[]string{bubbles + "TestFault_U7_Overloaded"},
	},
	{
		"U8", "400, 404, 413, 422; 401, 403", "the client's mistake as the backend wrote it, and never elsewhere; the operator's credential: elsewhere, else 503 `upstream_refused`, and the credential is disabled until a reload, or for an hour; another of the same backend serves meanwhile", "none",
		[]string{bubbles + "TestFault_U8_Refused", bubbles + "TestFault_U8_DisablesTheCredential", bubbles + "TestParkedBackend", bubbles + "TestRefusalPassesAsItIs"},
	},
	{
		"U9", "no headers", "elsewhere at the deadline, to the millisecond; 504 `upstream_timeout`", "estimated",
		[]string{bubbles + "TestFault_U9_NoHeaders", bubbles + "TestCS2FallbackFromASilentBackend", bubbles + "TestCase_cO6_BlackHole"},
	},
	{
		"U9", "no headers from a whole failure domain", "in another domain within one deadline, though other backends of the failed one come first", "estimated, one attempt for each call until the breakers open",
		[]string{bubbles + "TestFault_U9_DomainDown", "internal/engine.TestAttemptsLeaveFailedDomains"},
	},
	{
		"U10", "headers, then no content", "as U9", "estimated",
		[]string{bubbles + "TestFault_U10_NoFirstToken"},
	},
	{
		"U11", "silence in mid-stream", "comments every 15 s, then cut with `upstream_stalled`; no second start", "counted or estimated",
		[]string{bubbles + "TestFault_U11_Stall", bubbles + "TestCS3TooSlowIsAStall", bubbles + "TestCS3SlowBackendCounts"},
	},
	{
		"U12", "end, reset or broken chunk in mid-stream", "cut with `upstream_truncated`, never a clean end", "counted or estimated",
		[]string{bubbles + "TestFault_U12_Truncated", bubbles + "TestCS1BackendDiesAfterContent"},
	},
	{
		"U13", "end without `[DONE]` after the finish reason", "success; `[DONE]` is added", "reported, or estimated",
		[]string{bubbles + "TestFault_U13_NoTerminalMarker"},
	},
	{
		"U14", "`[DONE]` without a finish reason", "success, as it came", "reported, or estimated",
		[]string{bubbles + "TestFault_U14_NoFinishReason"},
	},
	{
		"U15", "error object in a 200 before content", "elsewhere; 502 `upstream_error`", "estimated input",
		[]string{bubbles + "TestFault_U15_ErrorInA200BeforeContent", bubbles + "TestErrorBeforeContentFallsBack", bubbles + "TestCS8ErrorsInStreamCount"},
	},
	{
		"U16", "error object after content", "cut with `upstream_error`; it counts against the backend", "counted or estimated",
		[]string{bubbles + "TestFault_U16_ErrorAfterContent", bubbles + "TestCase_cS8_ErrorsInStreams"},
	},
	{
		"U17", "event that is not JSON", "before content elsewhere, else 502 `upstream_malformed`; after it cut with that; its bytes reach nobody", "counted or estimated",
		[]string{bubbles + "TestFault_U17_Malformed", transcripts + "TestFault_U17_EveryProvider"},
	},
	{
		"U18", "CRLF, CR, byte order mark, no space, several data lines, comments, ids with NUL, characters cut anywhere", "the backend's bytes, with the same meaning", "the same",
		[]string{bubbles + "TestFault_U18_Framing", transcripts + "TestFault_U18_EveryProvider", transcripts + "TestFault_U18_Frames", "internal/wire.TestEvents", bubbles + "TestCS7AnyChunking"},
	},
	{
		"U19", "bytes that are no UTF-8", "U+FFFD in their place", "as told",
		[]string{bubbles + "TestFault_U19_InvalidUTF8", transcripts + "TestFault_U19_EveryProvider", "internal/wire.TestTapMends"},
	},
	{
		"U20", "event of 100 MB, endless line", "cut with `upstream_too_large`, before content elsewhere, else 502 with it; the heap grows by less than twice `event_limit`, and the backend is cut off", "counted or estimated",
		[]string{here + "TestFault_U20_HugeEvent", bubbles + "TestFault_U20_LargeEvent", transcripts + "TestFault_U20_EveryProvider", "internal/wire.TestEventsTooLarge"},
	},
	{
		"U21", "gzip, br or zstd that nobody asked for", "elsewhere; 502 `upstream_malformed`; nothing is unpacked", "estimated",
		[]string{bubbles + "TestFault_U21_Compressed", transcripts + "TestFault_U21_EveryProvider"},
	},
	{
		"U22", "no usage told", "success", "estimated",
		[]string{bubbles + "TestFault_U22_NoUsage", transcripts + "TestFault_U22_EveryProvider"},
	},
	{
		"U23", "usage told twice, or in every event", "success", "reported, once: what the provider billed",
		[]string{bubbles + "TestFault_U23_UsageTwice", transcripts + "TestFault_U23_EveryProvider"},
	},
	{
		"U24", "usage of zero, negative, 10¹⁸, falling", "success", "counted within a fifth of the provider's bill, `anomalous`",
		[]string{bubbles + "TestFault_U24_ImpossibleUsage", transcripts + "TestFault_U24_EveryProvider", bubbles + "TestSettlement"},
	},
	{
		"U25", "cache and reasoning inside or beside the totals", "success", "disjoint classes that sum to the provider's total",
		[]string{bubbles + "TestFault_U25_CacheInsideAndBeside", transcripts + "TestFault_U25_EveryProvider", "internal/wire.TestUsageSumsToTotal"},
	},
	{
		"U26", "another model in the answer", "success, as it came", "reported, at the price of the model that was served where that is known, else of the one that was asked for; the entry names both",
		[]string{bubbles + "TestFault_U26_OtherModel", "internal/config.TestServedPrice", transcripts + "TestFault_U26_EveryProvider"},
	},
	{
		"U27", "arguments of a tool call cut off", "cut with `upstream_truncated`", "counted or estimated",
		[]string{bubbles + "TestFault_U27_CutArguments", transcripts + "TestFault_U27_EveryProvider"},
	},
	{
		"U28", "301 to 308", "elsewhere; 502 `upstream_redirect`; it is not followed", "none",
		[]string{bubbles + "TestFault_U28_Redirect", "internal/egress.TestRedirectIsNotFollowed"},
	},
	{
		"U29", "data after `[DONE]`, connection never closed", "the end at `[DONE]`, within a second", "reported",
		[]string{bubbles + "TestFault_U29_DataAfterTheEnd"},
	},
	{
		"U30", "answer in one piece that is huge, or drips", "502 `upstream_too_large` beyond 32 MiB; 504 `upstream_timeout` at the deadline", "estimated",
		[]string{bubbles + "TestFault_U30_LargeOrSlowBody"},
	},
	{
		"U31", "backend restarts", "one request is its probe; then its share of slots and turns climbs from 10 % to all over 30 s, and others take the rest", "–",
		[]string{bubbles + "TestFault_U31_ComesBackByARamp", "internal/route.TestRampShare", "test/live.TestOutageOf30s"},
	},
	{
		"U32", "engine's metrics stale or lying", "nothing: our own count is the authority, a hint only lowers; from five missed intervals on the slots fall, to half at most", "–",
		[]string{"internal/route.TestStaleLoadLowersSlowly", "internal/route.TestLoadOnlyLowers", "internal/route.TestLearntMemory"},
	},

	{
		"C1", "leaves while it waits in a queue", "–", "attempt 0, nothing charged; the place in the queue is free at once",
		[]string{bubbles + "TestC1ClientLeavesTheQueue"},
	},
	{
		"C2", "leaves before the first byte", "the backend sees it within 100 ms", "estimated",
		[]string{bubbles + "TestFault_C2_LeavesBeforeTheFirstByte", bubbles + "TestCD3ClientLeavesBeforeTheAnswer"},
	},
	{
		"C3", "leaves in mid-stream", "the backend sees it within 100 ms; no goroutine stays", "counted or estimated",
		[]string{bubbles + "TestFault_C3_LeavesInMidStream", bubbles + "TestCD1ClientLeavesInMidStream", bubbles + "TestC3GoroutinesReturn"},
	},
	{
		"C4", "leaves after the end", "–", "reported",
		[]string{bubbles + "TestC4ClientLeavesAfterTheEnd"},
	},
	{
		"C5", "reads slowly, or not at all", "its own upstream waits for it; cut after 30 s without a byte taken; others are not disturbed", "counted or estimated, `client_stalled`",
		[]string{bubbles + "TestC5SlowReader", bubbles + "TestSlowReaderThatReadsIsServed", bubbles + "TestFault_C5_ManySlowReaders"},
	},
	{
		"C6", "head or body comes slowly", "cut after 10 s; 408 `body_timeout`", "none: no place was taken",
		[]string{bubbles + "TestFault_C6_SlowHead", bubbles + "TestC6SlowBody"},
	},
	{
		"C7", "vanishes without a word", "the kernel gives the connection up after 45 s without an acknowledgement", "as C3",
		[]string{bubbles + "TestC7DeadPeer"},
	},
	{
		"C8", "transfer encoding and length in one head, LF alone, lengths that differ, 64 KiB head", "400, of the large head 431; the connection is closed and nothing behind it is read", "none",
		[]string{here + "TestFault_C8_RawSocket", bubbles + "TestFault_C8_SmuggledRequest", bubbles + "TestFault_C8_LargeHead", bubbles + "TestHostileRequests"},
	},
	{
		"C9", "10,000 streams opened and reset over HTTP/2", "HTTP/2 is not spoken without TLS: one answer, and the connection is closed", "none",
		[]string{here + "TestFault_C9_RapidReset"},
	},
	{
		"C10", "depth, repeated keys, 1e400, lone surrogates", "400 `invalid_request`", "none",
		[]string{bubbles + "TestFault_C10_HostileBodies", "internal/wire.TestScanRefuses"},
	},
	{
		"C11", "the same `Idempotency-Key` again: at the same time, with another body, later", "409 `idempotency_in_flight` with Retry-After; 422 `idempotency_mismatch`; the same status and bytes with `idempotent-replayed: true` and the first request's id", "one billed entry, and for each of the others one of zero",
		[]string{bubbles + "TestFault_C11_IdempotencyKey", "internal/app.TestFault_C11_AcrossRestarts", "internal/idempotency.TestReplicasRunOnce"},
	},
	{
		"C11", "kill -9 while the request of a key runs", "connection reset; the key is 409 until its lease ends, 30 s at most, and then free", "lost: the estimate, never zero",
		[]string{"internal/idempotency.TestLeaseOfADeadProcess"},
	},

	{
		"V1", "reload of a file with a mistake, a cycle, a missing secret, a port in use, or of none", "nothing; ready throughout, and the mistake is told with its place", "–",
		[]string{here + "TestFault_V1_BadReload", "internal/app.TestFailedReloadChangesNothing", "internal/cli.TestScripts"},
	},
	{
		"V2", "reload that removes a backend with streams", "they finish, and no new one begins there; the status shows what drains", "reported",
		[]string{here + "TestFault_V2_ReloadRemovesABackend"},
	},
	{
		"V3", "reloads without end, by API and by signal", "nothing: no request fails, and goroutines and descriptors return", "–",
		[]string{here + "TestFault_V3_ReloadWithoutEnd"},
	},
	{
		"D1", "SIGTERM with 1,000 streams", "none lost: not ready and still open for the lame duck's time, then closed until the last has ended", "all reported; exit 0",
		[]string{here + "TestFault_D1_DrainLosesNone", "internal/app.TestStopDrains"},
	},
	{
		"D1", "drain too long, or a second SIGTERM", "cut with `shutting_down`", "counted or estimated; exit 0",
		[]string{here + "TestFault_D1_CutDrain", bubbles + "TestD1Shutdown", "internal/cli.TestSignals"},
	},
	{
		"D2", "SIGTERM while the store is locked", "nothing; exit 0 once the store has had its 5 s", "synced in the journal, in the store after the next start, once",
		[]string{here + "TestFault_D2_StopWhileTheStoreIsLocked"},
	},
	{
		"L4", "a line of a batch that two workers answer: one was paused beyond its lease, or its process was killed", "one result of each line, none lost", "the attempt of the line's result is the tenant's; the other's entry says `voided_dup`, shows its cost, and is in no sum",
		[]string{"internal/jobs.TestFault_L4_a_line_that_two_workers_answer", "internal/jobs.TestCase_cC3_two_workers_and_a_crash", "test/crash.TestBatchKilled"},
	},
	{
		"R1", "Redis of the output cache refuses, or says nothing", "its answer, with `sluice-cache: miss`; an answer of Redis is waited for 50 ms at most, and not at all after three failures in a row; ready throughout", "reported: each request was run",
		[]string{here + "TestFault_R1_CacheInRedisGone", "internal/cache.TestRedisThatDoesNotAnswer"},
	},
	{
		"T1", "wall clock set by ±1 s, −1 h, ±1 day, 1 year", "no bucket refills, no hold, wait or cool-down ends by it, and no queue changes its order; a clock set forward opens the next window of a budget once, set back it opens none", "in the window of the arrival",
		[]string{"internal/engine.TestFault_T1_ClockSetRefillsNothing", "internal/engine.TestFault_T1_ClockSetExpiresNothing", "internal/engine.TestFault_T1_ClockSetAndBudgets", "internal/engine.TestFault_T1_ClockSetKeepsTheQueue", "internal/quota.TestTimeNeverGoesBack"},
	},
	{
		"O1", "three times what the pool serves, for three minutes: interactive three quarters of it, the rest standard and batch", "interactive within its target; batch is refused first, then standard, within 5 ms: 503 `degraded` with Retry-After and `sluice-tier`; the pool's ladder climbs a tier at a time and comes back without flapping", "none for what is refused",
		[]string{"test/live.TestFault_O1_ThreeTimesTheCapacity", "test/live.TestLadderUnderASawtooth", "internal/ladder.TestNeverFlaps"},
	},
	{
		"O3", "prompts of 100,000 tokens come faster than they can be read", "short ones do not wait behind them; from tier 2 on the long ones go to another pool, or 503 `degraded`; no prompt is cut", "none for what is refused",
		[]string{"test/live.TestFault_O3_LongPromptFlood", "internal/engine.TestLadderCapsContext"},
	},
	{
		"O4", "every backend's breaker open", "503 `no_backend` at once, with the time of the first probe as Retry-After; a backend that answers some requests stays in use while it is the last", "none",
		[]string{bubbles + "TestFault_O4_AllBackendsOpen", "internal/route.TestSettleReleases"},
	},
	{
		"O5", "a safety hook's service is down, too slow, too busy, or answers what is no verdict", "by its `on_failure`: 503 `hook_failed` before anything is sent (502 for an answer), within its deadline and after five in a row at once; or as if it had allowed",
		"no attempt, or the usage of the answer that was not delivered; what failed and why, never a text",
		[]string{bubbles + "TestHookStages", bubbles + "TestHookDeadlineAndBreaker", bubbles + "TestHookConcurrency", "internal/hook.TestCallsThatBringNoVerdict"},
	},
	{
		"O4", "a region silent, of a model with a locality", "in another region within one deadline, within its headroom: what is beyond waits for as long as it may; one request at a time goes back, as a probe, and then more by the ramp. Nowhere else where residency forbids it", "estimated, one attempt for each call until the breakers open",
		[]string{bubbles + "TestFault_O4_RegionDown", bubbles + "TestFault_O4_RegionDownWithResidency", "internal/engine.TestGuestsLeaveWhatIsNotTheirs", "internal/engine.TestGuestsKeepTheWaitBound", "internal/route.TestSiteComesBackByItsRamp"},
	},
}
