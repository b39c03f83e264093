/// The TLS settings and context of one listener, reloaded when its files change.
struct ListenerSecurity {
    let settings: TLSServerSettings
    private(set) var context: TLSContext
    /// The marks of changed files when the change was first seen, and when they could not be used.
    private var suspected: FileMarks?
    private var refused: FileMarks?

    init(_ settings: TLSServerSettings) throws(TLSSetupError) {
        self.settings = settings
        context = try TLSContext(server: settings)
    }

    var watchesFiles: Bool { !settings.files.isEmpty }

    /// Reads certificate, key and authorities again.
    ///
    /// - Returns: whether a file has changed.
    /// - Throws: the reason why the new ones cannot be used; the old ones stay in force.
    @discardableResult
    mutating func reload() throws(TLSSetupError) -> Bool {
        let former = context.files
        context = try TLSContext(server: settings)
        return context.files != former
    }

    /// Checks whether files have changed. A change is loaded when two checks in a row see the same, so that a
    /// certificate is not read while its key is still the old one.
    ///
    /// - Returns: the result to report; nil: nothing.
    mutating func check() -> Result<Void, TLSSetupError>? {
        let marks = context.files.renewed
        if marks == context.files || marks == refused {
            suspected = nil
            return nil
        }
        guard marks == suspected else {
            suspected = marks
            return nil
        }
        suspected = nil
        do throws(TLSSetupError) {
            try reload()
            refused = nil
            return .success(())
        } catch {
            refused = marks
            return .failure(error)
        }
    }
}
