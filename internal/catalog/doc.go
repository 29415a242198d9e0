// Package catalog knows the models of hosted providers: their prices, context
// lengths and capabilities, as of a day.
//
// # What it is
//
// The program ships with catalog.jsonl: a [Header], then one [Record] per
// provider and model. It is made from charm.land/catwalk (Charmbracelet, MIT)
// and @pydantic/genai-prices (Pydantic, MIT), whose licences are in licenses/,
// and from corrections.json, facts about single rows: the true largest output
// (the sources list a client's default), context lengths, cache minimums, and
// prices by service tier, which the sources lack.
//
// # Names
//
// A provider is found by its name or a usual spelling of it ("google" is
// gemini). Within a provider a model is found, regardless of case, by
//
//  1. the catalogue's own name;
//  2. an alias of a row;
//  3. the name of a row before a date (-20251001, @20251001, -2025-10-01), where
//     the row says that a date may follow or has no rules at all. Where it lists
//     its dates, a date that is not listed is another model: snapshots of one
//     name have had different prices;
//  4. the longest pattern of a row that fits. Two rows whose patterns are as
//     long are no answer.
//
// A provider that the catalogue does not know, such as an account named by the
// operator, is searched for under 1 to 3 at every provider. If those that list
// the model disagree on any price, there is no answer: a price is never guessed.
// Engines of one's own are priced by the configuration or not at all.
//
// # Which prices are trusted
//
// No source is authoritative and some rows are wrong; the conversion leaves out
// what cannot be, and a row without a trusted price is found with its context
// but has a nil Price and says why, so that the policy for unpriced models
// decides and nothing is ever free by mistake:
//
//   - zero is a price only for models whose name says ":free";
//   - a cache read dearer than the input means that one of the two is wrong: no
//     price. One dearer than half the input, and a cache write cheaper than the
//     input, are left out and inherit the input price;
//   - an hour's cache of a Claude model whose five minutes' write costs 1.25 of
//     the input and whose hour is not listed costs 2 of it;
//   - a missing output price is zero for embedding models, else no price;
//   - models whose image tokens are dearer than their text tokens, and models for
//     audio without an audio price, have no price, since usage is not told by
//     image. Audio of other models costs what text does;
//   - thresholds told as their last token below (271,999) mean the round number;
//   - of two rows whose names differ in case alone the newer counts, with the
//     older's price if its own cannot be trusted;
//   - a price that is not a whole number of nano-dollars per million tokens fails
//     the conversion.
//
// # What a model lacks
//
// A record names what its model is known not to do: no attachments (images, audio,
// video, files) and no reasoning where the sources say so, and for models at their
// own providers what corrections.json says of them. Where nobody says anything the
// record names nothing: the provider knows, and refuses.
//
// # Refreshing
//
// Merge the sources into the schema "llm-catalog/1", then
//
//	go run ./internal/catalog/convert -corrections internal/catalog/convert/corrections.json \
//		-out internal/catalog/catalog.jsonl MERGED.json
//
// read what it says it left out, and the diff: prices move monthly. The new
// version is the day of the newest source; ledger entries keep the version that
// they were priced with. Operators lay their own prices over it: [Catalog.With].
//
// # What it does not do
//
// It fetches nothing, knows no currency but dollars, no discounts by contract or
// region, no prices by time of day (the dearest listed one stands).
package catalog
