import ChatModel
import DescribedDialects
import Dialects
import Glibc
import JSONText
import WireBytes

// What a chat frame costs: nanoseconds of CPU for each decode and encode, and for the JSON reader and writer beneath.

/// CPU time of this thread, in nanoseconds.
func cpuNanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// Keeps a result alive, so that the work for it is not optimised away.
@inline(never)
func consume<T>(_ value: borrowing T) {}

/// Runs `body` in rounds and prints the median, best and worst round. An argument picks the measurements whose name
/// begins with it.
func measure(_ name: String, bytes: Int, rounds: Int = 15, _ body: () -> Void) {
    if let wanted = CommandLine.arguments.dropFirst().first, !name.hasPrefix(wanted) { return }
    // Rounds of about 20 ms: long against the clock, short against the scheduler.
    var count = 1
    while true {
        let begin = cpuNanoseconds()
        for _ in 0..<count { body() }
        if cpuNanoseconds() - begin > 20_000_000 { break }
        count *= 2
    }
    let times = (0..<rounds).map { _ in
        let begin = cpuNanoseconds()
        for _ in 0..<count { body() }
        return Double(cpuNanoseconds() - begin) / Double(count)
    }.sorted()
    func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.utf8.count)) + text
    }
    func shown(_ value: Double) -> String { padded(String(Int64(value * 10) / 10), 9) }
    let median = times[times.count / 2]
    let rate = Double(bytes) / median
    print(
        name + String(repeating: " ", count: max(1, 34 - name.utf8.count)), padded(String(bytes), 8), shown(median),
        shown(times[0]), shown(times[times.count - 1]), padded(String(Int64(rate * 100)), 6) + "e-2")
}

/// An envelope frame with `body` as it stands in JSON.
func envelope(_ body: String) -> [UInt8] {
    Array(
        (#"{"event":"message","message_id":"6B29FC40-CA47-1067-B31D-00DD010662DA","#
            + #""sender_id":"9E107D9D-372B-4B68-A1D8-2542A4190001","sender_name":"Bo","body":"\#(body)","#
            + #""sent_at":1763695136.123456}"#).utf8)
}

@main
enum CodecBench {
    static func main() {
        let dialect = EnvelopeDialect()
        let us = ChatID("3F2504E0-4F89-41D3-9A0C-0305E82C3301")
        let alone = DialectContext(selfIDs: [us], selfNames: ["Ada"], room: "kitchen")
        let crowd = DialectContext(
            selfIDs: Set((0..<200).map { ChatID("3F2504E0-4F89-41D3-9A0C-0305E82C3" + String(100 + $0)) }),
            room: "kitchen")
        print("                                      bytes    median      best     worst   bytes/ns")

        let plain = envelope("the soup needs a little more salt")
        let frames: [(String, [UInt8])] = [
            ("plain", plain),
            ("escapes", envelope(#"line one\nline \"two\" \\ and \u00e9 \ud83e\udd80"#)),
            ("beyond ASCII", envelope("суп нужно ещё немного посолить 🦀")),
            ("16 KiB", envelope(String(repeating: "the soup needs salt ", count: 819))),
            ("16 KiB beyond ASCII", envelope(String(repeating: "ещё соли 🦀 ", count: 744))),
        ]
        for (name, frame) in frames {
            frame.withUnsafeBytes { bytes in
                measure("decode, " + name, bytes: bytes.count) {
                    consume(dialect.decode(bytes, isBinary: false, context: alone))
                }
            }
        }
        plain.withUnsafeBytes { bytes in
            measure("decode, plain, 200 of us", bytes: bytes.count) {
                consume(dialect.decode(bytes, isBinary: false, context: crowd))
            }
            measure("ids only, plain", bytes: bytes.count) {
                consume(crowd.isSelf(ChatPerson(id: ChatID("9E107D9D-372B-4B68-A1D8-2542A4190001"))))
            }
            measure("walk only, plain", bytes: bytes.count) { consume(memberCount(bytes)) }
            measure("tree, plain", bytes: bytes.count) { consume(try? JSONValue(parsing: bytes)) }
        }

        for (name, text) in [
            ("plain", "the soup needs a little more salt"), ("escapes", "line one\nline \"two\" \\"),
            ("16 KiB", String(repeating: "the soup needs salt ", count: 819)),
        ] {
            let command = ChatCommand.message(
                ChatMessage(
                    id: ChatID("6B29FC40-CA47-1067-B31D-00DD010662DA"), sender: ChatPerson(id: us, name: "Ada"),
                    text: text, at: ChatTimestamp(milliseconds: 1_763_695_136_123)))
            guard let frames = dialect.encode(command, context: alone).frames else { continue }
            measure("encode, " + name, bytes: frames.reduce(0) { $0 + $1.bytes.count }) {
                consume(dialect.encode(command, context: alone))
            }
        }

        measureJWTRoomsAndPlainJSON()
        backends()
        customRows()

        // Hostile documents: linear means that bytes/ns stays near that of other long frames.
        guard CommandLine.arguments.count < 2 else { return }
        let size = 4 * 1024 * 1024
        for (name, document) in [
            ("4 MiB of [", String(repeating: "[", count: size)),
            ("4 MiB of \"\",", "[" + String(repeating: #""","#, count: size / 3 - 1) + "0]"),
            ("4 MiB of \\n", "\"" + String(repeating: #"\n"#, count: size / 2 - 1) + "\""),
            ("4 MiB of digits", String(repeating: "7", count: size)),
            ("100k times one key", "{" + String(repeating: #""a":1,"#, count: 100_000) + #""a":1}"#),
        ] {
            Array(document.utf8).withUnsafeBytes { bytes in
                measure(name, bytes: bytes.count, rounds: 3) { consume(memberCount(bytes)) }
                measure(name + ", tree", bytes: bytes.count, rounds: 3) { consume(try? JSONValue(parsing: bytes)) }
            }
        }
    }

    /// A typical message of each other dialect, both ways.
    static func backends() {
        let us = ChatID("3F2504E0-4F89-41D3-9A0C-0305E82C3301")
        let text = "the soup needs a little more salt"
        let payload =
            #"{"id":"6B29FC40-CA47-1067-B31D-00DD010662DA","room":"kitchen","#
            + #""senderId":"9E107D9D-372B-4B68-A1D8-2542A4190001","senderName":"Bo","text":"\#(text)","#
            + #""sentAt":785387936.123}"#
        let base64 = Base64.encode(Array(payload.utf8))
        let frames: [(String, String)] = [
            ("typed", #"{"type":"chat.message","payload":"\#(base64)"}"#),
            (
                "swiftchat",
                #"{"date":785387936.12345,"id":"6B29FC40-CA47-1067-B31D-00DD010662DA","message":"\#(text)","#
                    + #""user":"Bo","userID":"9E107D9D-372B-4B68-A1D8-2542A4190001"}"#
            ),
            (
                "directus",
                #"{"type":"subscription","event":"create","data":[{"id":12,"status":"published","room":"kitchen","#
                    + #""text":"\#(text)","user_created":{"id":"9E107D9D-372B-4B68-A1D8-2542A4190001","#
                    + #""first_name":"Wes","last_name":"Payne"},"date_created":"2025-11-21T03:18:56.123Z","#
                    + #""user_updated":null,"date_updated":null,"file":null}],"uid":"s:kitchen"}"#
            ),
        ]
        let context = DialectContext(selfIDs: [us], selfNames: ["Ada"], room: "kitchen")
        let command = ChatCommand.message(
            ChatMessage(
                id: ChatID("6B29FC40-CA47-1067-B31D-00DD010662DA"), sender: ChatPerson(id: us, name: "Ada"),
                text: text, at: ChatTimestamp(milliseconds: 1_763_695_136_123)))
        for (name, frame) in frames {
            guard let dialect = (try? DialectTable.dialect(named: name)) ?? nil else { continue }
            Array(frame.utf8).withUnsafeBytes { bytes in
                guard case .event(.message) = dialect.decode(bytes, isBinary: false, context: context)
                else { return print(name + ": no message") }
                measure("decode, " + name, bytes: bytes.count) {
                    consume(dialect.decode(bytes, isBinary: false, context: context))
                }
            }
            guard let written = dialect.encode(command, context: context).frames else {
                return print(name + ": no frame")
            }
            measure("encode, " + name, bytes: written.reduce(0) { $0 + $1.bytes.count }) {
                consume(dialect.encode(command, context: context))
            }
        }
    }

    /// A described backend of the usual shape: three rules, a nested payload, a message of eight keys.
    static func customRows() {
        let definition = #"""
            {"decode":[
              {"when":{"/op":"act"},"event":"typing","fields":{"state":{"const":"start"},"sender.id":"/uid"}},
              {"when":{"/op":"seen"},"event":"receipt","fields":{"state":{"const":"read"},"ids":{"each":"/ids"}}},
              {"when":{"/op":"msg","/d/kind":["text","file"]},"event":"message","fields":{
                "id":"/d/id","room":"/ch","sender.id":"/d/from/uid","sender.name":["/d/from/nick","/d/from/uid"],
                "text":"/d/txt","at":{"ptr":"/d/ts","as":"time:unix_ms"},"replyTo":"/d/re",
                "attachments":{"each":"/d/files","fields":{"url":"/href"}}}}],
             "encode":{"message":{"op":"send","ch":"{{room}}","cid":"{{id}}","txt":"{{text}}",
               "as":"{{sender.name|default:\"guest\"}}","ts":"{{at|unix_ms}}","re?":"{{replyTo}}",
               "files?":{"$each":"attachments","as":{"href":"{{item.url}}"}}}}}
            """#
        guard let json = try? JSONValue(parsing: definition), let compiled = try? CustomDefinition(json) else {
            print("custom: the definition does not compile")
            return
        }
        let dialect = CustomDialect(compiled)
        let context = DialectContext(selfIDs: [ChatID("3F2504E0-4F89-41D3-9A0C-0305E82C3301")], room: "kitchen")
        let frame = Array(
            (#"{"op":"msg","ch":"kitchen","d":{"kind":"text","id":"6B29FC40-CA47-1067-B31D-00DD010662DA","#
                + #""from":{"uid":"9E107D9D-372B-4B68-A1D8-2542A4190001","nick":"Bo"},"#
                + #""txt":"the soup needs a little more salt","ts":1763695136123}}"#).utf8)
        frame.withUnsafeBytes { bytes in
            measure("custom decode, plain", bytes: bytes.count) {
                consume(dialect.decode(bytes, isBinary: false, context: context))
            }
        }
        let command = ChatCommand.message(
            ChatMessage(
                id: ChatID("6B29FC40-CA47-1067-B31D-00DD010662DA"),
                sender: ChatPerson(id: ChatID("3F2504E0-4F89-41D3-9A0C-0305E82C3301"), name: "Ada"),
                text: "the soup needs a little more salt", at: ChatTimestamp(milliseconds: 1_763_695_136_123)))
        guard let frames = dialect.encode(command, context: context).frames else { return }
        measure("custom encode, plain", bytes: frames.reduce(0) { $0 + $1.bytes.count }) {
            consume(dialect.encode(command, context: context))
        }
    }

    /// Walks a document and keeps nothing.
    static func memberCount(_ bytes: UnsafeRawBufferPointer) -> Int {
        var count = 0
        do throws(JSONError) {
            var reader = try JSONReader(bytes)
            if try reader.enterObject() {
                while let key = try reader.nextKey() {
                    _ = try reader.readValue()
                    if !key.isNull { count += 1 }
                }
            } else {
                _ = try reader.readValue()
            }
            try reader.finish()
        } catch { return -1 }
        return count
    }
}
