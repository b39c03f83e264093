/// What one listener's connections are secured with.
struct ListenerSecurity {
    let settings: TLSServerSettings
    private(set) var context: TLSContext
    /// How changed files looked when they were seen changed for the first time, and when they could not be used.
    private var suspected: FileMarks?
    private var refused: FileMarks?

    init(_ settings: TLSServerSettings) throws(TLSSetupError) {
        self.settings = settings
        context = try TLSContext(server: settings)
    }

    var watchesFiles: Bool { !settings.files.isEmpty }

    /// Reads certificate, key and authorities again.
    ///
    /// - Throws: why the new ones cannot be used; the old ones stay in force.
    mutating func reload() throws(TLSSetupError) { context = try TLSContext(server: settings) }

    /// Looks whether files have changed. Changes are taken up when they have rested from one look to the next, so that a
    /// certificate is not read while its key is still the old one.
    ///
    /// - Returns: what is to be told of it; nil: nothing.
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
