import Testing

@testable import PlainServer

@Suite("Telnet")
struct TelnetTests {
}
