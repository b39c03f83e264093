import BridgeTestSupport
import Foundation
import Testing

@Suite("Transcripts")
struct TranscriptTests {
    /// Beside this file, so that an update changes what is reviewed.
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Transcripts")

    static let files: [String] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".txt") }.sorted()
    }()

    @Test("there are transcripts")
    func transcriptsExist() { #expect(Self.files.count >= 15) }

    @Test("a transcript comes out as it is written", arguments: files)
    func play(file: String) throws {
        let url = Self.folder.appendingPathComponent(file)
        let text = try String(contentsOf: url, encoding: .utf8)
        let result = try TranscriptPlayer(text: text).play()
        if ProcessInfo.processInfo.environment["UPDATE_TRANSCRIPTS"] == "1", result.text != text {
            try result.text.write(to: url, atomically: true, encoding: .utf8)
        }
        #expect(result.failure == nil, "\(file): \(result.failure ?? "")")
    }
}
