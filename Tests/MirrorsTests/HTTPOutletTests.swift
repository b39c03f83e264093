import ChatModel
import HTTPProtocol
import Testing

@testable import Mirrors

@Suite("Requests of a batch for a tool, one after another")
struct HTTPOutletTests {
    private static func post(_ text: String) -> MirrorPost {
        MirrorPost(
            .message(MarkedText(text, as: .irc)), room: "lobby", channel: "#lobby", msgid: text,
            at: ChatTimestamp(milliseconds: 0), speaker: MirrorPost.Speaker(nick: "ann"))
    }

    @Test("a request bears the time at which it is sent, also when the tool was away for an hour")
    func signedWhenSent() throws {
        var outlet = HTTPOutlet(JSONForm(), MirrorWording(), secret: MirrorSecret(Array("secret".utf8)))
        outlet.begin([Self.post("hello")])
        var sent: [HTTPHeaders] = []
        for seconds in [Int64(1_700_000_000), 1_700_003_600] {
            let now = ChatTimestamp(milliseconds: seconds * 1000)
            guard case .send(let request) = outlet.next(now: now) else {
                Issue.record("nothing is sent")
                return
            }
            sent.append(HTTPHeaders(request.headers.map { ($0.name, $0.value) }))
            #expect(sent.last?.first("Chatbridge-Timestamp") == String(seconds))
            guard case .settled(.later) = outlet.answered(MirrorAnswer(status: 503), now: now) else {
                Issue.record("a tool that is away settles more than that")
                return
            }
        }
        #expect(sent.first?.first("Idempotency-Key") == sent.last?.first("Idempotency-Key"))
        #expect(sent.first?.first("Chatbridge-Signature") != sent.last?.first("Chatbridge-Signature"))
    }
}
