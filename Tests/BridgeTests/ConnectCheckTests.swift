import BridgeTestSupport
import Studio
import Testing
import Upstream

@testable import ChatBridge
@testable import Configuration

@Suite("chatbridge check --connect")
struct ConnectCheckTests {
    private func run(
        _ toml: String, json: Bool = false, room: String? = nil
    ) async -> (code: Int32, output: String, errors: String) {
        let texts = Texts()
        let code = await ConnectCheck.run(
            GlobalOptions(), CheckOptions(json: json, connect: true, room: room),
            environment: testEnvironment(["chatbridge.toml": toml, "/token": "hunter2\n"]),
            output: { texts.output += $0 },
            errors: { texts.errors += $0 })
        return (code, texts.output, texts.errors)
    }

    private final class Texts {
        var output = ""
        var errors = ""
    }

    @Test("a room whose backend answers is usable, and each step has its time")
    func good() async throws {
        let studio = try await StudioDriver.start(
            port: 0, settings: StudioSettings(visitedRooms: ["lobby"]))
        let result = await run("[[rooms]]\nname = \"lobby\"\nurl = \"ws://127.0.0.1:\(studio.port)/lobby\"")
        studio.stop()
        studio.waitUntilStopped()
        #expect(result.code == 0)
        #expect(result.output.contains("\n  tcp         ok ") && result.output.contains("\n  handshake   ok "))
        #expect(result.output.contains("\n  usable "))
    }

    @Test("of a room without a backend it says which step failed, whose fault it is, and what to do")
    func refused() async {
        let toml =
            "[[rooms]]\nname = \"lobby\"\nurl = \"ws://127.0.0.1:1/x?token=hunter2\"\n"
            + "auth = { type = \"bearer\", token_file = \"/token\" }"
        let result = await run(toml, json: true)
        #expect(result.code == ExitCode.unavailable)
        #expect(result.output.contains(#""step":"tcp","ok":false"#))
        #expect(result.output.contains("refused the connection: nothing listens there"))
        #expect(result.output.contains(#""fault":"the backend, or the network on the way""#))
        #expect(!result.output.contains("hunter2"))
    }

    private static let alice = """

        [[accounts]]
        name = "alice"
        certfp = ["00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"]
        upstream = { lobby = { type = "bearer", token_file = "/token", as = "u7" } }
        """

    @Test("an account's own log-in is opened beside the room, and it says who the account is there")
    func ownLogin() async throws {
        let studio = try await StudioDriver.start(port: 0, settings: StudioSettings(visitedRooms: ["lobby"]))
        let toml = "[[rooms]]\nname = \"lobby\"\nurl = \"ws://127.0.0.1:\(studio.port)/lobby\""
        let result = await run(toml + Self.alice)
        let other = await run(
            toml + "\n[[rooms]]\nname = \"attic\"\nurl = \"ws://127.0.0.1:1/\"" + Self.alice, room: "lobby")
        studio.stop()
        studio.waitUntilStopped()
        #expect(result.code == 0)
        let reports = result.output.split(separator: "\n\n")
        #expect(reports.count == 2)
        #expect(reports.first?.contains("room lobby: ws://") == true)
        #expect(reports.last?.contains("room lobby as alice: ws://") == true)
        #expect(reports.last?.contains("\n  account     u7, as the configuration says\n  usable ") == true)
        #expect(!result.output.contains("hunter2"))
        #expect(other.output.contains("lobby as alice") && !other.output.contains("attic"))
    }

    @Test("an own log-in that fails blames the account's credentials")
    func ownLoginRefused() async {
        let result = await run(
            "[[rooms]]\nname = \"lobby\"\nurl = \"ws://127.0.0.1:1/\"" + Self.alice,
            json: true)
        #expect(result.code == ExitCode.unavailable)
        #expect(result.output.contains(#"{"room":"lobby","account":"alice","url":"ws://127.0.0.1:1/","ok":false"#))
        #expect(
            ConnectAdvice.about(.handshake, status: 401, isProxied: false, account: "alice").fault
                == "the credentials in upstream of the account alice")
    }

    @Test("a room that is not in the configuration is an error of usage")
    func unknown() async {
        let result = await run("[[rooms]]\nname = \"lobby\"\nurl = \"ws://127.0.0.1:1/\"", room: "loby")
        #expect(result.code == ExitCode.usage)
        #expect(result.errors.contains("(did you mean \"lobby\"?)"))
    }

    @Test(
        "the fault of a refused handshake follows from its status",
        arguments: [
            (401, "the room's credentials"), (403, "the room's credentials"), (404, "the path in the URL"),
            (503, "the backend, or the gateway in front of it"), (429, "the backend, or the gateway in front of it"),
            (200, "the address in the URL"), (nil, "the program that listens there"),
        ] as [(Int?, String)])
    func faults(_ status: Int?, _ fault: String) {
        #expect(ConnectAdvice.about(.handshake, status: status, isProxied: false).fault == fault)
    }

    @Test(
        "every step has an advice of its own, and behind a proxy it is the proxy's fault",
        arguments: ConnectStep.allCases)
    func advice(_ step: ConnectStep) {
        let advice = ConnectAdvice.about(step, status: nil, isProxied: false)
        #expect(!advice.fault.isEmpty && !advice.remedy.isEmpty)
        #expect(
            (ConnectAdvice.about(step, status: nil, isProxied: true).fault == "the proxy")
                == (step == .tcp || step == .proxy))
    }
}
