// Clients of one account that go by the same name: one that came again, or two programs that both call themselves `ann`.
//
// When a connection opens and another of the same account and name stands, nobody can tell which it is: the other may be what a
// broken network left behind, or another program. The one proof is an answer: whoever answers a PING that was sent after the new
// connection had logged in is there beside it. What came without being asked for may have been sent before the network broke.
//
// So each of the older connections is asked. Until it answers, the new one counts as the one that came again: they share a
// place in each room's order, and what one of them says is the other's own. Afterwards the two are distinct clients for good,
// also over a restart: the one that came later gets a number, and with it places of its own.
//
// A name of the family may be a newcomer's when nobody has it, or who has it does not answer, and when the program that had it
// last asked for the same capabilities, or nobody looked:
//
// | such names | the newcomer gets                                                                                        |
// |------------|-----------------------------------------------------------------------------------------------------------|
// | one        | that one, and goes on from its places                                                                     |
// | several    | a new number, as do all of these, at the places of the one that has got least                             |
// | none       | a new number, at the least places of those without somebody who answered, if there are any                |
//
// Where there are several, nobody knows whose place is whose. So nobody misses anything, and who had got more gets a part again,
// with the same msgids, what it said itself included. A name does not count among the several when its client has missed more than
// a client that comes again is given: programs that are gone for good would have the others get a part again for ever.
//
// What happens between an older and a newer connection of a family:
//
// | state    | meaning                                             | leaves by                                                  |
// |----------|-----------------------------------------------------|-------------------------------------------------------------|
// | waiting  | the family has several names: the newer one's       | all older ones answered, or went; patience is over →        |
// |          | registration waits for answers                      | its name is chosen, as above: distinct, or shared            |
// | shared   | they have one name; what one moves and says is both's | the older one answers → distinct; either goes → over      |
// | distinct | each has a name, places and words of its own        | either goes → over; its name waits for it                   |
//
// A family of one name costs its newcomers no time: they share it until the answer comes.
