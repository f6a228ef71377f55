//! The readers, by name. Made by `crates/adapters/file-readers/reader/generate.py`.

use super::reader_kind::Reader;

/// All readers, by name.
pub const READERS: &[Reader] = &[
    Reader {
        name: "AGILENT_GEN5",
        title: "Agilent Gen5",
        extensions: &["txt"],
    },
    Reader {
        name: "AGILENT_GEN5_IMAGE",
        title: "Agilent Gen5 Image",
        extensions: &["txt"],
    },
    Reader {
        name: "AGILENT_OPENLAB_CDS",
        title: "Agilent OpenLab CDS",
        extensions: &["rslt", "zip"],
    },
    Reader {
        name: "AGILENT_TAPESTATION_ANALYSIS",
        title: "Agilent TapeStation Analysis",
        extensions: &["xml"],
    },
    Reader {
        name: "APPBIO_ABSOLUTE_Q",
        title: "AppBio AbsoluteQ",
        extensions: &["csv", "zip"],
    },
    Reader {
        name: "APPBIO_QUANTSTUDIO",
        title: "AppBio QuantStudio RT-PCR",
        extensions: &["txt", "xlsx"],
    },
    Reader {
        name: "APPBIO_QUANTSTUDIO_DESIGNANDANALYSIS",
        title: "AppBio QuantStudio Design & Analysis",
        extensions: &["xlsx", "xls"],
    },
    Reader {
        name: "BD_BIOSCIENCES_FACSDIVA",
        title: "BD Biosciences FACSDiva",
        extensions: &["xml"],
    },
    Reader {
        name: "BECKMAN_COULTER_BIOMEK",
        title: "Beckman Coulter Biomek",
        extensions: &["csv", "log"],
    },
    Reader {
        name: "BECKMAN_ECHO_CHERRY_PICK",
        title: "Beckman Echo Cherry Pick",
        extensions: &["csv"],
    },
    Reader {
        name: "BECKMAN_ECHO_PLATE_REFORMAT",
        title: "Beckman Echo Plate Reformat",
        extensions: &["csv"],
    },
    Reader {
        name: "BECKMAN_PHARMSPEC",
        title: "Beckman Coulter PharmSpec",
        extensions: &["xlsx", "xls"],
    },
    Reader {
        name: "BECKMAN_VI_CELL_BLU",
        title: "Beckman Coulter Vi-Cell BLU",
        extensions: &["csv"],
    },
    Reader {
        name: "BECKMAN_VI_CELL_XR",
        title: "Beckman Coulter Vi-Cell XR",
        extensions: &["txt", "xls", "xlsx"],
    },
    Reader {
        name: "BENCHLING_CHROMELEON",
        title: "Benchling Thermo Fisher Scientific Chromeleon",
        extensions: &["json"],
    },
    Reader {
        name: "BENCHLING_EMPOWER",
        title: "Benchling Waters Empower Adapter",
        extensions: &["json"],
    },
    Reader {
        name: "BIORAD_BIOPLEX",
        title: "Bio-Rad Bio-Plex Manager",
        extensions: &["xml"],
    },
    Reader {
        name: "BMG_LABTECH_SMART_CONTROL",
        title: "BMG Labtech SMART Control",
        extensions: &["xlsx"],
    },
    Reader {
        name: "BMG_MARS",
        title: "BMG Labtech MARS",
        extensions: &["csv"],
    },
    Reader {
        name: "CFXMAESTRO",
        title: "Bio-Rad CFX Maestro",
        extensions: &["csv"],
    },
    Reader {
        name: "CHEMOMETEC_NC_VIEW",
        title: "ChemoMetec NC View",
        extensions: &["csv"],
    },
    Reader {
        name: "CHEMOMETEC_NUCLEOVIEW",
        title: "ChemoMetec Nucleoview",
        extensions: &["csv"],
    },
    Reader {
        name: "CTL_IMMUNOSPOT",
        title: "CTL ImmunoSpot",
        extensions: &["txt"],
    },
    Reader {
        name: "CYTIVA_BIACORE_INSIGHT",
        title: "Cytiva Biacore Insight",
        extensions: &["xlsx", "xlsm"],
    },
    Reader {
        name: "CYTIVA_BIACORE_T200_CONTROL",
        title: "Cytiva Biacore T200 Control",
        extensions: &["blr"],
    },
    Reader {
        name: "CYTIVA_BIACORE_T200_EVALUATION",
        title: "Cytiva Biacore T200 Evaluation",
        extensions: &["bme"],
    },
    Reader {
        name: "CYTIVA_UNICORN",
        title: "Cytiva Unicorn",
        extensions: &["zip"],
    },
    Reader {
        name: "FLOWJO",
        title: "FlowJo",
        extensions: &["wsp"],
    },
    Reader {
        name: "LUMINEX_INTELLIFLEX",
        title: "Luminex INTELLIFLEX",
        extensions: &["csv", "xlsx"],
    },
    Reader {
        name: "LUMINEX_XPONENT",
        title: "Luminex xPONENT",
        extensions: &["csv", "xlsx"],
    },
    Reader {
        name: "MABTECH_APEX",
        title: "Mabtech Apex",
        extensions: &["xlsx"],
    },
    Reader {
        name: "METHODICAL_MIND",
        title: "MSD Methodical Mind",
        extensions: &["txt"],
    },
    Reader {
        name: "MOLDEV_SOFTMAX_PRO",
        title: "Molecular Devices SoftMax Pro",
        extensions: &["txt"],
    },
    Reader {
        name: "MSD_WORKBENCH",
        title: "MSD Discovery Workbench",
        extensions: &["csv", "txt", "xlsx"],
    },
    Reader {
        name: "NOVABIO_FLEX2",
        title: "NovaBio Flex2",
        extensions: &["csv"],
    },
    Reader {
        name: "PERKIN_ELMER_ENVISION",
        title: "PerkinElmer Envision",
        extensions: &["csv"],
    },
    Reader {
        name: "QIACUITY_DPCR",
        title: "Qiacuity dPCR",
        extensions: &["csv"],
    },
    Reader {
        name: "REVVITY_KALEIDO",
        title: "Revvity Kaleido",
        extensions: &["csv"],
    },
    Reader {
        name: "REVVITY_MATRIX",
        title: "Revvity Matrix",
        extensions: &["csv", "xlsx"],
    },
    Reader {
        name: "ROCHE_CEDEX_BIOHT",
        title: "Roche Cedex BioHT",
        extensions: &["txt"],
    },
    Reader {
        name: "ROCHE_CEDEX_HIRES",
        title: "Roche Cedex HiRes",
        extensions: &["csv", "xlsx"],
    },
    Reader {
        name: "TECAN_MAGELLAN",
        title: "Tecan Magellan",
        extensions: &["xlsx"],
    },
    Reader {
        name: "THERMO_FISHER_DIOMNI",
        title: "Thermo Fisher Diomni",
        extensions: &["xlsx"],
    },
    Reader {
        name: "THERMO_FISHER_GENESYS30",
        title: "Thermo Fisher Scientific Genesys30",
        extensions: &["csv", "tsv"],
    },
    Reader {
        name: "THERMO_FISHER_GENESYS_ON_BOARD",
        title: "Thermo Fisher Scientific Genesys On-Board",
        extensions: &["csv"],
    },
    Reader {
        name: "THERMO_FISHER_NANODROP_8000",
        title: "Thermo Fisher Scientific NanoDrop 8000",
        extensions: &["txt"],
    },
    Reader {
        name: "THERMO_FISHER_NANODROP_EIGHT",
        title: "Thermo Fisher Scientific NanoDrop Eight",
        extensions: &["txt", "tsv"],
    },
    Reader {
        name: "THERMO_FISHER_NANODROP_ONE",
        title: "Thermo Fisher Scientific Nanodrop One",
        extensions: &["csv", "xlsx"],
    },
    Reader {
        name: "THERMO_FISHER_QUBIT4",
        title: "Thermo Fisher Scientific Qubit 4",
        extensions: &["csv", "xlsx"],
    },
    Reader {
        name: "THERMO_FISHER_QUBIT_FLEX",
        title: "Thermo Fisher Scientific Qubit Flex",
        extensions: &["csv", "xlsx"],
    },
    Reader {
        name: "THERMO_FISHER_VISIONLITE",
        title: "Thermo Fisher Scientific VISIONlite",
        extensions: &["csv"],
    },
    Reader {
        name: "THERMO_SKANIT",
        title: "Thermo Fisher Scientific SkanIt",
        extensions: &["xlsx"],
    },
    Reader {
        name: "UNCHAINED_LABS_LUNATIC",
        title: "Unchained Labs Lunatic & Stunner",
        extensions: &["csv", "xlsx"],
    },
];
