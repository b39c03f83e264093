import Testing

@testable import ChatBridge

@Suite("The command cert")
struct CertCommandTests {
    @Test("cert takes a word and what belongs to it")
    func commandLine() throws {
        let parse = CommandLineParser.parse
        #expect(
            try parse(["cert", "self-signed", "--name", "a.test", "--name=::1", "--out", "/d", "--days", "9"])
                == .cert(.selfSigned(names: ["a.test", "::1"], directory: "/d", days: 9)))
        #expect(try parse(["cert", "self-signed"]) == .cert(.selfSigned(names: [], directory: ".", days: 365)))
        #expect(try parse(["cert", "fingerprint", "x.pem"]) == .cert(.fingerprint(file: "x.pem")))
    }

    @Test("files that cannot be written or read have codes of their own")
    func exits() {
        var said = ""
        let written = OfflineCommands.cert(
            .selfSigned(names: ["a.test"], directory: "/none/of/it", days: 1), output: { _ in }, errors: { said += $0 })
        #expect(written == 73 && said.contains("cannot write /none/of/it/key.pem"), "\(said)")
        #expect(OfflineCommands.cert(.fingerprint(file: "/none/of/it"), output: { _ in }, errors: { _ in }) == 66)
    }

    @Test(
        "cert says what it misses",
        arguments: [
            (["cert"], "\"cert\" needs a word: self-signed, or fingerprint FILE"),
            (["cert", "fingerprint"], "\"cert fingerprint\" needs a file: cert fingerprint FILE"),
            (
                ["cert", "selfsigned"],
                "\"cert\" has no \"selfsigned\" (did you mean \"self-signed\"?); there are self-signed and "
                    + "fingerprint FILE"
            ),
            (["cert", "self-signed", "a"], "\"a\" is too much: names are written --name HOST"),
            (["cert", "self-signed", "--days", "0"], "--days \"0\" is not a number from 1 to 36500"),
        ])
    func commandLineErrors(_ arguments: [String], _ message: String) {
        #expect(throws: UsageError(message: message)) { try CommandLineParser.parse(arguments) }
    }
}
